// SPDX-License-Identifier: Apache-2.0
//
// AllocationRecord: records the memory that one kernel allocates while it runs, for traced steps.
//
// Other steps pay nothing: only a kernel of a traced step gets recording allocators, which wrap the
// device's allocators. They are never destroyed, because tensors refer to their allocator.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/op/kernel.h"
#include "core/runtime/step_stats.h"

namespace penstock {

// While this object lives, it records the allocations and deallocations that a kernel called with
// `params` makes on this thread. If several objects are nested, only the innermost one records.
class AllocationRecord {
 public:
  explicit AllocationRecord(KernelContext::Params* params);
  ~AllocationRecord();
  AllocationRecord(const AllocationRecord&) = delete;
  AllocationRecord& operator=(const AllocationRecord&) = delete;

  // Returns the memory recorded so far, by allocator.
  std::vector<NodeStats::Memory> memory() const;

 private:
  friend class RecordingAllocator;
  struct Block {
    void* pointer;
    size_t bytes;
  };
  struct UsedMemory {
    const Allocator* allocator;
    int64_t total_bytes = 0;
    int64_t peak_bytes = 0;
    int64_t live_bytes = 0;
    std::vector<Block> blocks = {};
  };
  void NoteAllocated(const Allocator& allocator, void* pointer, size_t bytes);
  void NoteFreed(const void* pointer);

  static constinit thread_local AllocationRecord* current_;

  KernelContext::Params* const params_;
  const std::pair<Allocator*, Allocator*> allocators_;  // the kernel's own allocators: device, host
  AllocationRecord* const outer_;
  std::vector<UsedMemory> used_;
};

}  // namespace penstock
