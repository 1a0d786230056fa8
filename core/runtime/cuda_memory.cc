// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/cuda_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>
#include <vector>

#include "core/base/mutex.h"

namespace penstock {
namespace {

class Counters {
 public:
  void Allocated(size_t bytes) {
    const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    allocations_.fetch_add(1, std::memory_order_relaxed);
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void Freed(size_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }
  AllocatorStats stats() const {
    return {.bytes_in_use = in_use_.load(std::memory_order_relaxed),
            .peak_bytes_in_use = peak_.load(std::memory_order_relaxed),
            .num_allocations = allocations_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<int64_t> in_use_{0}, peak_{0}, allocations_{0};
};

class CudaAllocator final : public Allocator {
 public:
  CudaAllocator(int ordinal, cudaStream_t stream, cudaMemPool_t pool, int64_t limit)
      : name_(StrCat("GPU ", ordinal, " memory")), stream_(stream), pool_(pool), limit_(limit) {}

  const std::string& name() const override { return name_; }
  bool host_accessible() const override { return false; }

  void* Allocate(size_t bytes) override {
    void* pointer = nullptr;
    const cudaError_t error =
        cudaMallocFromPoolAsync(&pointer, std::max<size_t>(bytes, 1), pool_, stream_);
    if (error != cudaSuccess) {
      cudaGetLastError();  // clear the error, or the next launch reports it
      return nullptr;
    }
    counters_.Allocated(bytes);
    return pointer;
  }

  void Deallocate(void* pointer, size_t bytes) override {
    counters_.Freed(bytes);
    cudaFreeAsync(pointer, stream_);
  }

  Status Copy(const void* from, void* to, size_t bytes) override {
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_);
    if (error == cudaSuccess) return OkStatus();
    return Internal("copying ", bytes, " bytes within ", name_,
                    ": CUDA: ", cudaGetErrorString(error));
  }

  AllocatorStats stats() const override {
    AllocatorStats stats = counters_.stats();
    uint64_t reserved = 0;
    cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved);
    stats.bytes_reserved = static_cast<int64_t>(reserved);
    stats.bytes_limit = limit_;
    return stats;
  }

 private:
  const std::string name_;
  const cudaStream_t stream_;
  const cudaMemPool_t pool_;
  const int64_t limit_;
  Counters counters_;
};

class PinnedBlocks final : public Allocator {
 public:
  const std::string& name() const override { return name_; }

  void* Allocate(size_t bytes) override {
    const int size_class = ClassOf(bytes);
    counters_.Allocated(bytes);
    {
      MutexLock lock(mu_);
      std::vector<void*>& free = free_[size_class];
      if (!free.empty()) {
        void* const pointer = free.back();
        free.pop_back();
        kept_ -= size_t{1} << size_class;
        return pointer;
      }
    }
    void* pointer = nullptr;
    if (cudaHostAlloc(&pointer, size_t{1} << size_class, cudaHostAllocPortable) == cudaSuccess) {
      return pointer;
    }
    cudaGetLastError();
    counters_.Freed(bytes);
    return nullptr;
  }

  void Deallocate(void* pointer, size_t bytes) override {
    counters_.Freed(bytes);
    const int size_class = ClassOf(bytes);
    {
      MutexLock lock(mu_);
      if (kept_ + (size_t{1} << size_class) <= kKeptMax) {
        free_[size_class].push_back(pointer);
        kept_ += size_t{1} << size_class;
        return;
      }
    }
    cudaFreeHost(pointer);
  }

  AllocatorStats stats() const override {
    AllocatorStats stats = counters_.stats();
    MutexLock lock(mu_);
    stats.bytes_reserved = stats.bytes_in_use + static_cast<int64_t>(kept_);
    return stats;
  }

 private:
  static constexpr size_t kKeptMax = size_t{1} << 30;  // other processes cannot use locked pages
  static constexpr int kSmallest = 12;                 // blocks have at least 2^12 bytes, a page

  static int ClassOf(size_t bytes) {
    return std::max<int>(kSmallest, std::bit_width(std::max<size_t>(bytes, 1) - 1));
  }

  const std::string name_ = "page-locked CPU memory";
  Counters counters_;
  mutable Mutex mu_;
  std::vector<void*> free_[64] ABSL_GUARDED_BY(mu_);  // by size class
  size_t kept_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Allocator>> MakeCudaAllocator(int ordinal, cudaStream_t stream) {
  cudaMemPool_t pool = nullptr;
  uint64_t keep_all = UINT64_MAX;
  size_t free_bytes = 0, total_bytes = 0;
  cudaError_t error = cudaDeviceGetDefaultMemPool(&pool, ordinal);
  if (error == cudaSuccess) {
    error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all);
  }
  if (error == cudaSuccess) error = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (error != cudaSuccess) {
    return Internal("the memory pool of GPU ", ordinal, ": CUDA: ", cudaGetErrorString(error));
  }
  return std::make_unique<CudaAllocator>(ordinal, stream, pool, static_cast<int64_t>(total_bytes));
}

Allocator& PinnedAllocator() {
  static Allocator& allocator = *new PinnedBlocks;
  return allocator;
}

}  // namespace penstock
