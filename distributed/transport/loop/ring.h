// SPDX-License-Identifier: Apache-2.0
//
// RingWriter and RingReader: a stream of bytes from one process to another through memory that
// both map.
//
// Publish makes all appended bytes visible at once. If the writer dies before it calls Publish, the
// reader sees none of them. Each end keeps its own position in its own memory, and checks the other
// end's position before using it. Only one thread at a time may use an end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace penstock {

// The positions of both ends, which start at zero and only grow. They are in the shared memory.
struct RingPositions {
  alignas(64) std::atomic<uint64_t> published{0};
  alignas(64) std::atomic<uint64_t> consumed{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A ring of `bytes` (a power of two) at `data`. Borrowed.
struct RingMemory {
  RingPositions* positions;
  char* data;
  size_t bytes;
};

class RingWriter {
 public:
  explicit RingWriter(const RingMemory& memory) : memory_(memory) {}

  // Returns how many bytes may be appended. DataLoss if the reader claims to have read bytes
  // that were never written, or fewer than before.
  StatusOr<size_t> Room();
  // Appends bytes. REQUIRES: there is room.
  void Append(const void* bytes, size_t count);
  void Publish() { memory_.positions->published.store(appended_, std::memory_order_seq_cst); }
  // Return the number of bytes appended since the beginning, and the number of those that the
  // reader had consumed when Room was last called.
  uint64_t appended() const { return appended_; }
  uint64_t consumed() const { return consumed_; }

 private:
  const RingMemory memory_;
  uint64_t appended_ = 0;
  uint64_t consumed_ = 0;
};

class RingReader {
 public:
  explicit RingReader(const RingMemory& memory) : memory_(memory) {}

  // Returns how many bytes may be read. DataLoss if the writer claims more than fit into the ring,
  // or fewer than were read.
  StatusOr<size_t> Readable();
  // Returns whether there is something to read.
  bool HasMore() const {
    return memory_.positions->published.load(std::memory_order_seq_cst) != read_;
  }
  // Copies the next bytes to `to`, or skips them if `to` is null. REQUIRES: the bytes are readable.
  void Read(void* to, size_t count);
  // Makes the space of the bytes that were read available to the writer.
  void Release() { memory_.positions->consumed.store(read_, std::memory_order_seq_cst); }

 private:
  const RingMemory memory_;
  uint64_t read_ = 0;
};

}  // namespace penstock
