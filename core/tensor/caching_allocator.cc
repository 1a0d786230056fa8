// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/caching_allocator.h"

#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/tensor/huge_pages.h"
#include "core/tensor/memory_account.h"

namespace penstock {
namespace {

// A thread adds its count of bytes, taken minus freed, to the shared statistics when the absolute
// value of the count exceeds this.
constexpr int64_t kBytesPerPublish = 64 << 10;

// Each counter has only one writer, so a load and a store suffice.
void Add(std::atomic<int64_t>& counter, int64_t value) {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

size_t CachedBytesMax() { return std::min<size_t>(MachineMemoryBytes() / 8, size_t{2} << 30); }

}  // namespace

struct CachingAllocator::FreeBlock {
  FreeBlock* next;
};

struct CachingAllocator::FreeList {
  FreeBlock* first = nullptr;
  int count = 0;

  void Push(void* pointer) {
    first = new (pointer) FreeBlock{first};
    ++count;
  }
  void* Pop() {
    --count;
    return std::exchange(first, first->next);
  }
  Batch Take(int wanted) {
    FreeBlock* last = first;
    for (int i = 1; i < wanted; ++i) last = last->next;
    count -= wanted;
    return {std::exchange(first, std::exchange(last->next, nullptr)), wanted};
  }
};

struct CachingAllocator::ThreadCache {
  std::array<FreeList, kNumClasses> lists;
  std::atomic<int64_t> unpublished{0};  // bytes in use, not yet in the shared statistics
  std::atomic<int64_t> allocations{0};

  // Counts bytes that this thread takes or frees. Returns true if it is time to publish the count.
  bool Count(int64_t bytes) {
    Add(unpublished, bytes);
    const int64_t now = unpublished.load(std::memory_order_relaxed);
    return now > kBytesPerPublish || now < -kBytesPerPublish;
  }
};

// Frees the cache of an ending thread. Later allocations of that thread, in destructors that run
// after this one, use no cache.
struct CachingAllocator::ThreadCacheOwner {
  ThreadCache cache;
  ThreadCacheOwner() {
    CachingAllocator& allocator = Get();
    MutexLock lock(allocator.threads_mu_);
    allocator.threads_.push_back(&cache);
  }
  ~ThreadCacheOwner() {
    thread_cache_ = nullptr;
    thread_ended_ = true;
    Get().Detach(cache);
  }
};

constinit thread_local CachingAllocator::ThreadCache* CachingAllocator::thread_cache_ = nullptr;
constinit thread_local bool CachingAllocator::thread_ended_ = false;

CachingAllocator& CachingAllocator::Get() {
  static CachingAllocator& allocator = *new CachingAllocator;
  return allocator;
}

CachingAllocator::CachingAllocator()
    : arena_(HugePages(), {.cached_bytes_max = CachedBytesMax()}) {}

// Size classes are multiples of 64 up to 512, then four per doubling.
int CachingAllocator::ClassOf(size_t bytes) {
  if (bytes <= 512) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  const int log2 = std::bit_width(bytes - 1) - 1;
  return (log2 - 9) * 4 + static_cast<int>((bytes - 1) >> (log2 - 2)) + 4;
}

size_t CachingAllocator::ClassBytes(int size_class) {
  if (size_class < 8) return (size_class + 1) * 64;
  return size_t{4 + size_class % 4 + 1u} << (size_class / 4 + 5);
}

// Returns the number of blocks in a batch: 16 KiB of blocks, but at least 2 and at most 32 of them.
// A thread keeps up to two batches of each class.
int CachingAllocator::BatchCount(int size_class) {
  return static_cast<int>(std::clamp<size_t>((16 << 10) / ClassBytes(size_class), 2, 32));
}

CachingAllocator::ThreadCache* CachingAllocator::AttachThread() {
  if (thread_ended_) return nullptr;
  thread_local ThreadCacheOwner owner;
  return thread_cache_ = &owner.cache;
}

void* CachingAllocator::Allocate(size_t bytes) {
  ThreadCache* cache = thread_cache_;
  if (bytes > kSmallBytesMax || cache == nullptr) [[unlikely]]
    return AllocateSlowly(bytes);
  const int size_class = ClassOf(bytes);
  FreeList& list = cache->lists[size_class];
  if (list.first == nullptr && !Refill(*cache, size_class)) [[unlikely]]
    return nullptr;
  Add(cache->allocations, 1);
  if (cache->Count(ClassBytes(size_class))) [[unlikely]] {
    Publish(cache->unpublished.exchange(0, std::memory_order_relaxed));
  }
  return list.Pop();
}

void CachingAllocator::Deallocate(void* pointer, size_t bytes) {
  ThreadCache* cache = thread_cache_;
  if (bytes > kSmallBytesMax || cache == nullptr) [[unlikely]] {
    return DeallocateSlowly(pointer, bytes);
  }
  const int size_class = ClassOf(bytes);
  FreeList& list = cache->lists[size_class];
  list.Push(pointer);
  if (cache->Count(-static_cast<int64_t>(ClassBytes(size_class)))) [[unlikely]] {
    Publish(cache->unpublished.exchange(0, std::memory_order_relaxed));
  }
  const int batch = BatchCount(size_class);
  if (list.count >= 2 * batch) [[unlikely]]
    ReturnBatch(size_class, list.Take(batch));
}

void* CachingAllocator::AllocateSlowly(size_t bytes) {
  if (bytes > kSmallBytesMax) return AllocateLarge(bytes);
  if (AttachThread() != nullptr) return Allocate(bytes);
  const size_t rounded = ClassBytes(ClassOf(bytes));
  void* pointer = aligned_alloc(kAlignment, rounded);
  if (pointer == nullptr) return nullptr;
  CountSmall(rounded);
  allocations_.fetch_add(1, std::memory_order_relaxed);
  Publish(rounded);
  return pointer;
}

void CachingAllocator::DeallocateSlowly(void* pointer, size_t bytes) {
  if (bytes > kSmallBytesMax) return DeallocateLarge(pointer, bytes);
  if (AttachThread() != nullptr) return Deallocate(pointer, bytes);
  const size_t rounded = ClassBytes(ClassOf(bytes));
  Publish(-static_cast<int64_t>(rounded));
  CountSmall(-static_cast<int64_t>(rounded));
  free(pointer);
}

void* CachingAllocator::AllocateLarge(size_t bytes) {
  const int64_t rounded = static_cast<int64_t>(arena_.RoundUp(bytes));
  MemoryAccount& account = ChargedAccount::current();
  if (rounded <= 0 || !account.Charge(rounded)) return nullptr;
  const int64_t limit = MemoryAccount::Task().limit();
  const size_t most = limit > 0 ? static_cast<size_t>(limit) : SIZE_MAX;
  void* const pointer = arena_.Allocate(bytes, &account, most);
  if (pointer == nullptr) {
    account.Return(rounded);
    SetRefusal(": the system has no more");
    return nullptr;
  }
  account.Ref();
  allocations_.fetch_add(1, std::memory_order_relaxed);
  Publish(rounded);
  return pointer;
}

void CachingAllocator::DeallocateLarge(void* pointer, size_t bytes) {
  const int64_t rounded = static_cast<int64_t>(arena_.RoundUp(bytes));
  Publish(-rounded);
  auto* const account = static_cast<MemoryAccount*>(arena_.Deallocate(pointer));
  account->Return(rounded);
  account->Unref();
}

void CachingAllocator::CountSmall(int64_t bytes) {
  small_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  MemoryAccount::Task().ChargeAlways(bytes);
}

bool CachingAllocator::Refill(ThreadCache& cache, int size_class) {
  FreeList& list = cache.lists[size_class];
  const int64_t bytes = ClassBytes(size_class);
  Central& central = central_[size_class];
  {
    MutexLock lock(central.mu);
    if (!central.batches.empty()) {
      const Batch batch = central.batches.back();
      central.batches.pop_back();
      list.first = batch.first;
      list.count = batch.count;
      central_bytes_.fetch_sub(batch.count * bytes, std::memory_order_relaxed);
      return true;
    }
  }
  const int wanted = BatchCount(size_class);
  for (int i = 0; i < wanted; ++i) {
    void* pointer = aligned_alloc(kAlignment, bytes);
    if (pointer == nullptr) break;
    list.Push(pointer);
  }
  CountSmall(list.count * bytes);
  return list.count > 0;
}

void CachingAllocator::ReturnBatch(int size_class, Batch batch) {
  const int64_t bytes = batch.count * static_cast<int64_t>(ClassBytes(size_class));
  if (central_bytes_.load(std::memory_order_relaxed) + bytes <= kCentralBytesMax) {
    Central& central = central_[size_class];
    MutexLock lock(central.mu);
    central.batches.push_back(batch);
    central_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return;
  }
  Free(size_class, batch);
}

void CachingAllocator::Free(int size_class, Batch batch) {
  const int64_t bytes = batch.count * static_cast<int64_t>(ClassBytes(size_class));
  CountSmall(-bytes);
  for (FreeBlock *block = batch.first, *next; block != nullptr; block = next) {
    next = block->next;
    free(block);
  }
}

void CachingAllocator::ReturnUnused() {
  for (int size_class = 0; size_class < kNumClasses; ++size_class) {
    std::vector<Batch> batches;
    {
      MutexLock lock(central_[size_class].mu);
      batches.swap(central_[size_class].batches);
    }
    for (const Batch& batch : batches) {
      central_bytes_.fetch_sub(batch.count * static_cast<int64_t>(ClassBytes(size_class)),
                               std::memory_order_relaxed);
      Free(size_class, batch);
    }
  }
  arena_.ReturnFree();
}

void CachingAllocator::Detach(ThreadCache& cache) {
  for (int i = 0; i < kNumClasses; ++i) {
    FreeList& list = cache.lists[i];
    if (list.count > 0) ReturnBatch(i, list.Take(list.count));
  }
  MutexLock lock(threads_mu_);
  Publish(cache.unpublished.load(std::memory_order_relaxed));
  allocations_.fetch_add(cache.allocations.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
  threads_.erase(std::find(threads_.begin(), threads_.end(), &cache));
}

void CachingAllocator::Publish(int64_t bytes) {
  const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

AllocatorStats CachingAllocator::stats() const {
  MutexLock lock(threads_mu_);
  AllocatorStats stats;
  stats.bytes_in_use = in_use_.load(std::memory_order_relaxed);
  stats.num_allocations = allocations_.load(std::memory_order_relaxed);
  for (const ThreadCache* cache : threads_) {
    stats.bytes_in_use += cache->unpublished.load(std::memory_order_relaxed);
    stats.num_allocations += cache->allocations.load(std::memory_order_relaxed);
  }
  stats.peak_bytes_in_use = std::max(stats.bytes_in_use, peak_.load(std::memory_order_relaxed));
  const Arena::Stats arena = arena_.stats();
  stats.bytes_reserved =
      small_bytes_.load(std::memory_order_relaxed) + arena.bytes_in_use + arena.bytes_cached;
  return stats;
}

}  // namespace penstock
