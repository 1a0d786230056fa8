// SPDX-License-Identifier: Apache-2.0
//
// CachingAllocator: the CPU's allocator. It is fast, because every op allocates.
//
//   up to 32 KiB   size classes; each thread keeps freed blocks of its own (no lock, no shared
//                  cache line), and exchanges batches of them with a central list per class
//   above          an Arena over huge pages
//
// Blocks that one thread allocates and another one frees (fetched tensors, sent tensors) pass
// through the central list, a batch at a time. Thread-safe. One per process, because each thread
// has one cache; never destroyed. It keeps unused memory, at most: 32 KiB for each class and thread
// (or three blocks, if these are larger), kCentralBytesMax in the central lists, and an eighth of
// the machine's memory, but no more than 2 GiB, in the arena. The peak in stats() may be wrong by
// 64 KiB per thread.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/allocator.h"
#include "core/tensor/arena.h"

namespace penstock {

class CachingAllocator final : public Allocator {
 public:
  static CachingAllocator& Get();

  const std::string& name() const override { return name_; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* pointer, size_t bytes) override;
  AllocatorStats stats() const override;

  // Returns unused memory to the system, except for the blocks in the threads' caches. Takes
  // milliseconds per GB.
  void ReturnUnused();

  static constexpr size_t kSmallBytesMax = 32 << 10;
  static constexpr int64_t kCentralBytesMax = 256 << 20;

 private:
  static constexpr int kNumClasses = 32;
  struct FreeBlock;
  struct FreeList;
  struct ThreadCache;
  struct ThreadCacheOwner;
  struct Batch {
    FreeBlock* first;
    int count;
  };
  struct Central {
    Mutex mu;
    std::vector<Batch> batches ABSL_GUARDED_BY(mu);
  };

  CachingAllocator();
  static int ClassOf(size_t bytes);
  static size_t ClassBytes(int size_class);
  static int BatchCount(int size_class);
  static ThreadCache* AttachThread();

  void* AllocateSlowly(size_t bytes);
  void DeallocateSlowly(void* pointer, size_t bytes);
  bool Refill(ThreadCache& cache, int size_class);
  void ReturnBatch(int size_class, Batch batch);  // to the central list, or to the system if full
  void Free(int size_class, Batch batch);         // returns the batch to the system
  void Detach(ThreadCache& cache);
  void Publish(int64_t bytes);     // adds `bytes` to the shared statistics
  void CountSmall(int64_t bytes);  // counts bytes taken from the system; < 0: returned to it
  void* AllocateLarge(size_t bytes);
  void DeallocateLarge(void* pointer, size_t bytes);

  static constinit thread_local ThreadCache* thread_cache_;
  static constinit thread_local bool thread_ended_;

  const std::string name_ = "CPU memory";
  Arena arena_;
  std::array<Central, kNumClasses> central_;
  std::atomic<int64_t> central_bytes_{0};
  std::atomic<int64_t> small_bytes_{0};  // bytes from the system, in use or kept
  std::atomic<int64_t> in_use_{0};       // excludes bytes that threads have not published yet
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};  // those of ended threads, and those that use no cache
  mutable Mutex threads_mu_;             // locked before the lock of the arena
  std::vector<ThreadCache*> threads_ ABSL_GUARDED_BY(threads_mu_);
};

}  // namespace penstock
