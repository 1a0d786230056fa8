// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/allocator.h"

#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/tensor/caching_allocator.h"
#include "core/tensor/system_allocator.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Tests the guarantees of Allocator for both allocators of the CPU.
class AllocatorTest : public ::testing::TestWithParam<bool> {
 protected:
  Allocator& allocator_ = GetParam() ? static_cast<Allocator&>(CachingAllocator::Get()) : system_;
  SystemAllocator system_;
};
INSTANTIATE_TEST_SUITE_P(CachingAndSystem, AllocatorTest, ::testing::Bool());

TEST_P(AllocatorTest, AlignedWritableAndDistinct) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t bytes = 0; bytes < (4 << 20); bytes = bytes * 9 / 8 + 1) {
    char* block = static_cast<char*>(allocator_.Allocate(bytes));
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment, 0) << bytes;
    memset(block, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    for (size_t j : {size_t{0}, bytes / 2, bytes - 1}) {
      if (j < bytes) {
        ASSERT_EQ(block[j], static_cast<char>(i)) << bytes;
      }
    }
  }
  void* second_empty_one = allocator_.Allocate(0);
  EXPECT_NE(second_empty_one, blocks[0].first);
  allocator_.Deallocate(second_empty_one, 0);
  for (const auto& [block, bytes] : blocks) allocator_.Deallocate(block, bytes);
}

TEST_P(AllocatorTest, CountsWhatIsInUse) {
  const AllocatorStats before = allocator_.stats();
  constexpr size_t kSizes[] = {1, 100, 5000, 100'000, 10'000'000};
  size_t sum = 0;
  std::vector<void*> blocks;
  for (size_t bytes : kSizes) {
    blocks.push_back(allocator_.Allocate(bytes));
    sum += bytes;
  }
  const AllocatorStats during = allocator_.stats();
  EXPECT_GE(during.bytes_in_use - before.bytes_in_use, sum);
  EXPECT_LE(during.bytes_in_use - before.bytes_in_use, sum * 5 / 4);
  EXPECT_EQ(during.num_allocations - before.num_allocations, 5);
  EXPECT_GE(during.peak_bytes_in_use, during.bytes_in_use);
  EXPECT_GE(during.bytes_reserved, during.bytes_in_use);
  for (size_t i = 0; i < blocks.size(); ++i) allocator_.Deallocate(blocks[i], kSizes[i]);
  const AllocatorStats after = allocator_.stats();
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_GE(after.peak_bytes_in_use, during.bytes_in_use);
}

TEST_P(AllocatorTest, ImpossibleSizesAreNull) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, size_t{1} << 60}) {
    EXPECT_EQ(allocator_.Allocate(bytes), nullptr) << bytes;
  }
}

// Blocks of all sizes are allocated by one thread and freed by another, while threads start and
// end.
TEST_P(AllocatorTest, BlocksWanderBetweenThreads) {
  const AllocatorStats before = allocator_.stats();
  std::vector<std::vector<std::pair<char*, size_t>>> made(8);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 1000; ++i) {
          const size_t bytes = i % 100 == 0 ? 200'000 : random() % 2000;
          char* block = static_cast<char*>(allocator_.Allocate(bytes));
          if (bytes > 0) block[0] = block[bytes - 1] = static_cast<char>(t);
          made[t].emplace_back(block, bytes);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (const auto& [block, bytes] : made[t]) {
          if (bytes > 0) {
            ASSERT_EQ(block[bytes - 1], static_cast<char>(t));
          }
          allocator_.Deallocate(block, bytes);
        }
        made[t].clear();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const AllocatorStats after = allocator_.stats();
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(after.num_allocations - before.num_allocations, 3 * 8 * 1000);
}

TEST(CachingAllocator, ReusesWhatWasFreedLast) {
  Allocator& allocator = CachingAllocator::Get();
  for (size_t bytes : {1, 64, 65, 1000, 32 << 10, 100'000, 5'000'000}) {
    void* first = allocator.Allocate(bytes);
    allocator.Deallocate(first, bytes);
    void* second = allocator.Allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    allocator.Deallocate(second, bytes);
  }
}

TEST(CachingAllocator, WhatOneThreadFreesAnotherGets) {
  Allocator& allocator = CachingAllocator::Get();
  constexpr size_t kBytes = 1500;
  constexpr int kBlocks = 5000;
  const auto make_and_free = [&] {
    std::vector<void*> blocks;
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(allocator.Allocate(kBytes));
    for (void* block : blocks) allocator.Deallocate(block, kBytes);
  };
  std::thread(make_and_free).join();
  const int64_t reserved = allocator.stats().bytes_reserved;
  std::thread(make_and_free).join();
  EXPECT_LE(allocator.stats().bytes_reserved, reserved);
}

TEST(CachingAllocator, UnusedSmallBlocksAreBounded) {
  Allocator& allocator = CachingAllocator::Get();
  constexpr size_t kBytes = 16 << 10;
  std::vector<void*> blocks;
  for (int i = 0; i < 30'000; ++i) blocks.push_back(allocator.Allocate(kBytes));  // 470 MB
  for (void* block : blocks) allocator.Deallocate(block, kBytes);
  const AllocatorStats stats = allocator.stats();
  EXPECT_LE(stats.bytes_reserved - stats.bytes_in_use,
            CachingAllocator::kCentralBytesMax + (int64_t{64} << 20));
}

// Frees memory in a destructor that runs after the thread's cache has been destroyed.
struct FreesLate {
  void* block = nullptr;
  ~FreesLate() {
    Allocator& allocator = CachingAllocator::Get();
    allocator.Deallocate(block, 100);
    allocator.Deallocate(allocator.Allocate(200), 200);
  }
};

TEST(CachingAllocator, ReturnsWhatIsUnused) {
  CachingAllocator& allocator = CachingAllocator::Get();
  const size_t sizes[] = {10'000, 40 << 20};
  std::vector<std::pair<void*, size_t>> blocks;
  for (int i = 0; i < 2'000; ++i) {
    const size_t bytes = sizes[i % 1'000 == 0];
    blocks.emplace_back(allocator.Allocate(bytes), bytes);
    memset(blocks.back().first, 1, bytes);
  }
  for (const auto& [block, bytes] : blocks) allocator.Deallocate(block, bytes);
  EXPECT_GT(allocator.stats().bytes_reserved, 90 << 20);
  allocator.ReturnUnused();
  EXPECT_LT(allocator.stats().bytes_reserved, 4 << 20);
  void* const again = allocator.Allocate(10'000);  // the allocator still works
  EXPECT_NE(again, nullptr);
  allocator.Deallocate(again, 10'000);
}

TEST(CachingAllocator, ThreadsMayFreeWhileTheyEnd) {
  const int64_t before = CachingAllocator::Get().stats().bytes_in_use;
  std::thread([] {
    thread_local FreesLate late;  // constructed first, destroyed last
    late.block = CachingAllocator::Get().Allocate(100);
  }).join();
  EXPECT_EQ(CachingAllocator::Get().stats().bytes_in_use, before);
}

TEST(CpuAllocator, IsOne) {
  EXPECT_EQ(&CpuAllocator(), &CpuAllocator());
  EXPECT_TRUE(CpuAllocator().host_accessible());
}

}  // namespace
}  // namespace penstock
