// SPDX-License-Identifier: Apache-2.0
//
// SharedSegment: the memory that the two ends of one connection share. It is a memfd: it has no
// name, disappears with the last process that maps it, and is sealed so that its length cannot
// change.
//
//   SharedState   flags: which end sleeps, which waits for room
//   tensors()     the ring of records, from the producer
//   commands()    the ring of commands, from the consumer
//   arena         the bytes of large tensors; the system allocates its memory when it is written
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/transport/loop/ring.h"
#include "distributed/transport/loop/unique_fd.h"

namespace penstock {

// A flag of one end of the connection. When the end is about to wait, it raises the flag, and then
// checks once more whether it has to wait. When the other end has produced what the first end waits
// for, it lowers the flag and wakes the first end.
class WaitFlag {
 public:
  void Raise() { raised_.store(1, std::memory_order_seq_cst); }
  void Lower() { raised_.store(0, std::memory_order_relaxed); }
  bool IsRaised() const { return raised_.load(std::memory_order_seq_cst) != 0; }
  bool LowerIfRaised() {
    return raised_.load(std::memory_order_seq_cst) != 0 &&
           raised_.exchange(0, std::memory_order_seq_cst) != 0;
  }

 private:
  std::atomic<uint32_t> raised_{0};
};

struct SharedState {
  RingPositions tensors;
  RingPositions commands;
  alignas(64) WaitFlag producer_sleeps;
  WaitFlag producer_blocked;  // the producer waits for the consumer to read
  alignas(64) WaitFlag consumer_sleeps;
  WaitFlag consumer_blocked;  // the consumer waits for the producer to read
};

class SharedSegment {
 public:
  static constexpr size_t kTensorRingBytes = size_t{1} << 20;
  static constexpr size_t kCommandRingBytes = size_t{64} << 10;
  static constexpr size_t kArenaBytes = size_t{1} << 30;

  // Makes a segment, and allocates the memory of both rings. ResourceExhausted names the
  // resource that the system lacks.
  static StatusOr<std::shared_ptr<SharedSegment>> Create();
  // Maps another process's segment. DataLoss if its layout is not the one that Create makes.
  static StatusOr<std::shared_ptr<SharedSegment>> Open(UniqueFd fd);
  SharedSegment(const SharedSegment&) = delete;
  ~SharedSegment();

  // Returns the descriptor to send to the other end; it is valid until CloseFd.
  int fd() const { return fd_.get(); }
  void CloseFd() { fd_.Close(); }
  SharedState& state() { return *reinterpret_cast<SharedState*>(base_); }
  RingMemory tensors();
  RingMemory commands();
  char* arena();
  // Makes the system allocate memory for a range of the arena, unless the range has memory already.
  // Returns false if the system has no memory; a write to the range would then kill the process.
  // Called by the producer. Thread-safe.
  bool Reserve(const char* part, size_t bytes);
  // Gives the memory of a range of the arena back to the system; the range then reads as zero.
  // Returns whether the system has taken it. Thread-safe.
  bool Discard(char* part, size_t bytes);

 private:
  static constexpr size_t kChunkBytes = size_t{1} << 20;

  SharedSegment(UniqueFd fd, char* base) : fd_(std::move(fd)), base_(base) {}
  static StatusOr<std::shared_ptr<SharedSegment>> Map(UniqueFd fd);

  UniqueFd fd_;
  char* const base_;
  Mutex mu_;
  std::bitset<kArenaBytes / kChunkBytes> reserved_ ABSL_GUARDED_BY(mu_);  // chunks of the arena
};

}  // namespace penstock
