// SPDX-License-Identifier: Apache-2.0
//
// Allocator: allocates the memory of one device's tensors, and keeps statistics.
//
// Thread-safe. Memory is aligned to kAlignment bytes. If there is no memory, Allocate returns null
// and does not abort: the caller returns a ResourceExhausted that names the op. An allocator must
// outlive all its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace penstock {

struct AllocatorStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t num_allocations = 0;  // since the start
  int64_t bytes_reserved = 0;   // bytes obtained from the system, in use or cached
  int64_t bytes_limit = 0;      // 0: none
};

class Allocator {
 public:
  static constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

  virtual ~Allocator() = default;
  virtual const std::string& name() const = 0;
  // Returns null if there is no memory. For zero bytes, returns a valid pointer that differs from
  // all others.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Deallocate(void* pointer, size_t bytes) = 0;
  virtual AllocatorStats stats() const = 0;
  // Returns true if the CPU may read and write the memory.
  virtual bool host_accessible() const { return true; }
  // Copies bytes between two places of this allocator's memory. On a device, the copy runs after
  // all earlier launches and before all later ones, and Copy returns without waiting for it.
  // Unimplemented for memory that the CPU cannot access, unless a subclass overrides Copy.
  virtual Status Copy(const void* from, void* to, size_t bytes);
};

// Returns the CPU's allocator. It keeps freed blocks by size class for the next step, and returns
// memory that stays unused to the system. Large blocks come from pre-faulted huge-page arenas,
// because the first touch of fresh pages runs at only 1.3 GB/s. One per process, never destroyed.
Allocator& CpuAllocator();

}  // namespace penstock
