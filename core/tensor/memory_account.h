// SPDX-License-Identifier: Apache-2.0
//
// MemoryAccount: counts the bytes that a task, a session or a step holds, and refuses charges that
// would exceed its limit.
//
//   task <- session <- step
//
// A charge counts in an account and in all accounts above it. If it would exceed the limit of one
// of these accounts, none of them is charged, and the code that wanted the memory returns
// ResourceExhausted with the text of TakeRefusal().
//
// The CPU's allocator charges blocks above 32 KiB to the thread's ChargedAccount, or to the task if
// the thread has none. The block holds a reference to the account until the block is freed, which
// may be long after the step (a variable). Smaller blocks are charged to the task alone, in batches
// of about 16 KiB, and are never refused. So the accounts of sessions and steps do not count
// tensors up to 32 KiB, tensors that arrive from clients and other tasks, and tensors allocated by
// threads that help with a ParallelFor: these are charged to the task only. No account counts the
// characters of strings, messages in flight and the nodes of graphs; DefaultMemoryLimit() leaves
// memory for them.
//
// Thread-safe; reference-counted. A large block costs a few atomic operations per account.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace penstock {

class MemoryAccount {
 public:
  // Returns the account of this process, which is that of its task. (The tasks of a simulation
  // share a process; each has an account below this one.) The account has no limit until
  // set_limit is called.
  static MemoryAccount& Task();
  // Returns a new account below `parent`. The caller gets the first reference to it; the account
  // holds a reference to `parent`. `owner` begins the text of refusals: "session 7" in "session 7
  // may hold 1000 bytes". `limit` is in bytes; 0: none.
  static MemoryAccount* New(std::string owner, int64_t limit, MemoryAccount& parent);

  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();

  // Returns false, and charges nothing, if a limit would be exceeded.
  [[nodiscard]] bool Charge(int64_t bytes);
  void ChargeAlways(int64_t bytes);
  void Return(int64_t bytes);

  const std::string& owner() const { return owner_; }
  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  // Returns the maximum number of bytes in use since the account was made, or since ResetPeak.
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  // For tests that measure one step.
  void ResetPeak() { peak_.store(in_use(), std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }  // 0: none
  void set_limit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  // Returns how many more bytes may be charged to the account and to all accounts above it;
  // INT64_MAX if none of them has a limit.
  int64_t available() const;

 private:
  MemoryAccount(std::string owner, int64_t limit, MemoryAccount* parent)
      : owner_(std::move(owner)), parent_(parent), limit_(limit) {}
  ~MemoryAccount() = default;
  void RaisePeak(int64_t now);

  const std::string owner_;
  MemoryAccount* const parent_;
  std::atomic<int64_t> limit_;
  std::atomic<int64_t> in_use_{0};
  std::atomic<int32_t> refs_{1};
  std::atomic<int64_t> peak_{0};
};

// Holds one reference to an account.
struct UnrefAccount {
  void operator()(MemoryAccount* account) const { account->Unref(); }
};
using MemoryAccountPtr = std::unique_ptr<MemoryAccount, UnrefAccount>;

// Returns why an allocation of this thread was last refused: ": session 7 may hold 1000 bytes and
// holds 900". Returns "" if none was refused since the last call on this thread.
std::string TakeRefusal();
// Sets the text that the next TakeRefusal on this thread returns. For code other than accounts that
// refuses allocations.
void SetRefusal(std::string why);

// While this object lives, blocks that its thread allocates are charged to `account`; null: to the
// task. Objects nest: the destructor restores the account of the enclosing one.
class ChargedAccount {
 public:
  explicit ChargedAccount(MemoryAccount* account) : outer_(std::exchange(current_, account)) {}
  ~ChargedAccount() { current_ = outer_; }
  ChargedAccount(const ChargedAccount&) = delete;
  ChargedAccount& operator=(const ChargedAccount&) = delete;
  static MemoryAccount& current() {
    return current_ != nullptr ? *current_ : MemoryAccount::Task();
  }

 private:
  static constinit thread_local MemoryAccount* current_;
  MemoryAccount* const outer_;
};

}  // namespace penstock
