// SPDX-License-Identifier: Apache-2.0
//
// MemoryAccount: counts the bytes that a task, a session or a step holds and refuses what would
// exceed its limit.
//
//   task <- session <- step
//
// A charge counts in an account and in all above it. If it would exceed the limit of one of them
// nothing is charged, and the caller reports RESOURCE_EXHAUSTED with the text of TakeRefusal().
//
// The CPU's allocator charges blocks above 32 KiB to the account that the thread works for
// (ChargedAccount), else to the task; the block holds a reference of the account until it is freed,
// which may be long after the step (a variable). Smaller blocks are charged to the task alone, in
// batches of about 16 KiB, and are never refused. So the slack is: tensors up to 32 KiB in the
// accounts of sessions and steps; tensors that arrive from clients and other tasks, or that threads
// allocate which help with a ParallelFor: they count for the task only; the characters of strings,
// messages in flight and graphs' nodes, which are not counted here at all. DefaultMemoryLimit()
// leaves room for them.
//
// Thread-safe; counted by references. Costs one atomic addition and one load per account and large
// block.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace penstock {

class MemoryAccount {
 public:
  // The account of this process. It has no limit until one is set.
  static MemoryAccount& Task();
  // A part of `parent`, of which it holds a reference; the caller has the first reference of the
  // new one. `owner` completes "... may hold": "session 7". `limit` in bytes; 0: none.
  static MemoryAccount* New(std::string owner, int64_t limit, MemoryAccount& parent);

  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();

  // False, and nothing is charged, if a limit would be exceeded.
  [[nodiscard]] bool Charge(int64_t bytes);
  void ChargeAlways(int64_t bytes);
  void Return(int64_t bytes);

  const std::string& owner() const { return owner_; }
  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  // The most that was in use at a time since the account was made, or since ResetPeak.
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void ResetPeak() { peak_.store(in_use(), std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }  // 0: none
  void set_limit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  // How many bytes the account and all above it leave; INT64_MAX where none has a limit.
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

// Why this thread's latest allocation was refused: ": session 7 may hold 1000 bytes and holds 900".
// Empty if none was since the last call.
std::string TakeRefusal();
// What TakeRefusal shall say, of a refusal that is not an account's.
void SetRefusal(std::string why);

// While it lives, what this thread allocates is charged to `account`; null: to the task. Scopes are
// nested like calls.
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
