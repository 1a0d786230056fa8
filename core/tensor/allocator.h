// SPDX-License-Identifier: Apache-2.0
//
// Allocator: where the memory of one device's tensors comes from, with statistics.
//
// Thread-safe. Memory is aligned to kAlignment bytes. Out of memory is a null pointer, never an
// abort: the caller turns it into ResourceExhausted that names the op. An allocator outlives every
// buffer made by it.
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
  int64_t bytes_reserved = 0;   // held from the system, in use or cached
  int64_t bytes_limit = 0;      // 0: none
};

class Allocator {
 public:
  static constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

  virtual ~Allocator() = default;
  virtual const std::string& name() const = 0;
  // bytes >= 0; zero bytes give a valid, distinct pointer.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Deallocate(void* pointer, size_t bytes) = 0;
  virtual AllocatorStats stats() const = 0;
  // True where the CPU may read and write the memory.
  virtual bool host_accessible() const { return true; }
  // Copies within this memory. On a device it is a part of the device's work: done after what was
  // launched before and before what is launched later; the caller does not wait. Unimplemented for
  // memory that the CPU cannot access, unless a subclass knows how.
  virtual Status Copy(const void* from, void* to, size_t bytes);
};

// The CPU's allocator: keeps freed blocks by size class for the next step, takes large blocks from
// pre-faulted huge-page arenas (first touch of fresh pages runs at 1.3 GB/s), returns memory that
// stays unused. One per process, lives for ever.
Allocator& CpuAllocator();

}  // namespace penstock
