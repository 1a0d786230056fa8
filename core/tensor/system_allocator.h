// SPDX-License-Identifier: Apache-2.0
//
// SystemAllocator: an allocator that passes every request to the C library. It is the CPU's
// allocator in builds with sanitizers, because cached blocks would hide a use after free.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <string>

#include "core/tensor/allocator.h"
#include "core/tensor/huge_pages.h"
#include "core/tensor/memory_account.h"

namespace penstock {

class SystemAllocator final : public Allocator {
 public:
  const std::string& name() const override { return name_; }

  void* Allocate(size_t bytes) override {
    void* pointer = nullptr;
    // The allocator of a sanitizer aborts the process on an extremely large request.
    const bool too_large = bytes > MachineMemoryBytes();
    if (too_large || posix_memalign(&pointer, kAlignment, bytes == 0 ? 1 : bytes) != 0) {
      SetRefusal(": the system has no more");
      return nullptr;
    }
    const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    allocations_.fetch_add(1, std::memory_order_relaxed);
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return pointer;
  }

  void Deallocate(void* pointer, size_t bytes) override {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    free(pointer);
  }

  AllocatorStats stats() const override {
    const int64_t in_use = in_use_.load(std::memory_order_relaxed);
    return {.bytes_in_use = in_use,
            .peak_bytes_in_use = peak_.load(std::memory_order_relaxed),
            .num_allocations = allocations_.load(std::memory_order_relaxed),
            .bytes_reserved = in_use};
  }

 private:
  const std::string name_ = "CPU memory";
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace penstock
