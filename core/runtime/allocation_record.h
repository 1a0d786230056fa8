// SPDX-License-Identifier: Apache-2.0
//
// AllocationRecord: the memory that one kernel takes while it runs, for steps that are traced.
//
// Other steps pay nothing: the kernel of a traced step is given allocators of the same memory that
// write down what they hand out. They live for ever, as its tensors may.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/op/kernel.h"
#include "core/runtime/step_stats.h"

namespace penstock {

// Records on its thread, from construction to destruction, what a kernel that is called with
// `params` allocates and frees. Records may be nested: the innermost one counts.
class AllocationRecord {
 public:
  explicit AllocationRecord(KernelContext::Params* params);
  ~AllocationRecord();
  AllocationRecord(const AllocationRecord&) = delete;
  AllocationRecord& operator=(const AllocationRecord&) = delete;

  // So far, by allocator.
  std::vector<NodeStats::Memory> memory() const;

 private:
  friend class RecordingAllocator;
  struct Block {
    void* pointer;
    size_t bytes;
  };
  struct Used {
    const Allocator* allocator;
    int64_t total_bytes = 0;
    int64_t peak_bytes = 0;
    int64_t live_bytes = 0;
    std::vector<Block> blocks = {};
  };
  void Allocated(const Allocator& allocator, void* pointer, size_t bytes);
  void Freed(const void* pointer);

  static constinit thread_local AllocationRecord* current_;

  KernelContext::Params* const params_;
  const std::pair<Allocator*, Allocator*> allocators_;  // the kernel's own: device, host
  AllocationRecord* const outer_;
  std::vector<Used> used_;
};

}  // namespace penstock
