// SPDX-License-Identifier: Apache-2.0
//
// SharedSegment: the memory that the two ends of one connection share. A memfd, which has no name
// and is gone with the last process that maps it, sealed so that its length cannot change.
//
//   SharedState   who sleeps and who waits for room
//   tensors()     the ring of records, from the producer
//   commands()    the ring of commands, from the consumer
//   arena         the bytes of large tensors; memory is taken as it is written
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

// A flag that one end raises before it looks a last time and waits; the other end takes it down
// after a change and rings the bell.
class WaitFlag {
 public:
  void Raise() { raised_.store(1, std::memory_order_seq_cst); }
  void Lower() { raised_.store(0, std::memory_order_relaxed); }
  bool IsRaised() const { return raised_.load(std::memory_order_seq_cst) != 0; }
  bool TakeDown() {
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
  WaitFlag producer_blocked;  // waits for the consumer to read
  alignas(64) WaitFlag consumer_sleeps;
  WaitFlag consumer_blocked;  // waits for the producer to read
};

class SharedSegment {
 public:
  static constexpr size_t kTensorRingBytes = size_t{1} << 20;
  static constexpr size_t kCommandRingBytes = size_t{64} << 10;
  static constexpr size_t kArenaBytes = size_t{1} << 30;

  // Takes the memory of both rings. ResourceExhausted says what the system lacks.
  static StatusOr<std::shared_ptr<SharedSegment>> Create();
  // Maps another process's segment. DataLoss if it is not what Create makes.
  static StatusOr<std::shared_ptr<SharedSegment>> Open(UniqueFd fd);
  SharedSegment(const SharedSegment&) = delete;
  ~SharedSegment();

  // Until CloseFd: what is sent to the other end.
  int fd() const { return fd_.get(); }
  void CloseFd() { fd_.Close(); }
  SharedState& state() { return *reinterpret_cast<SharedState*>(base_); }
  RingMemory tensors();
  RingMemory commands();
  char* arena();
  // Has the system find memory for part of the arena, unless it has done so already. False if there
  // is none: writing to that part would end the process. Of the producer. Thread-safe.
  bool Reserve(const char* part, size_t bytes);
  // Gives the memory of part of the arena back; it reads as zero then. Thread-safe.
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
