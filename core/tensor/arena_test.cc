// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/arena.h"

#include <stdlib.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "core/tensor/huge_pages.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr size_t kGranule = 1024, kRegion = 64 << 10;

// Counts mapped and returned memory.
class FakeSource : public MemorySource {
 public:
  ~FakeSource() override { EXPECT_TRUE(regions.empty()); }
  void* Map(size_t bytes) override {
    if (bytes > bytes_left) return nullptr;
    bytes_left -= bytes;
    void* region = aligned_alloc(kGranule, bytes);
    regions[region] = bytes;
    return region;
  }
  void Unmap(void* region, size_t bytes) override {
    ASSERT_EQ(regions.at(region), bytes);
    regions.erase(region);
    bytes_left += bytes;
    free(region);
  }
  bool Discard(void*, size_t bytes) override {
    discarded += can_discard ? bytes : 0;
    return can_discard;
  }

  std::map<void*, size_t> regions;
  size_t bytes_left = 1 << 30;
  size_t discarded = 0;
  bool can_discard = true;
};

Arena::Options TestOptions() { return {.granule = kGranule, .region_bytes = kRegion}; }

TEST(Arena, SplitsARegionAndJoinsItAgain) {
  FakeSource source;
  Arena arena(source, TestOptions());
  std::vector<char*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(static_cast<char*>(arena.Allocate(kRegion / 8)));
    memset(blocks.back(), i, kRegion / 8);
  }
  EXPECT_EQ(source.regions.size(), 1);
  EXPECT_EQ(arena.stats().bytes_in_use, kRegion);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(blocks[i], blocks[0] + i * (kRegion / 8));
    EXPECT_EQ(blocks[i][kRegion / 8 - 1], i);
  }
  // In this order, blocks are freed before, after and between free blocks, which tests all ways of
  // joining them.
  for (int i : {3, 5, 4, 0, 7, 1, 6, 2}) arena.Deallocate(blocks[i]);
  EXPECT_EQ(arena.stats().bytes_in_use, 0);
  EXPECT_EQ(arena.stats().bytes_cached, kRegion);
  void* whole = arena.Allocate(kRegion);
  EXPECT_EQ(whole, blocks[0]);
  EXPECT_EQ(source.regions.size(), 1);
  arena.Deallocate(whole);
}

TEST(Arena, ReusesTheBlockFreedLast) {
  FakeSource source;
  Arena arena(source, TestOptions());
  void* a = arena.Allocate(5000);
  void* between = arena.Allocate(1);
  void* b = arena.Allocate(5000);
  void* end = arena.Allocate(1);
  arena.Deallocate(a);
  arena.Deallocate(b);
  EXPECT_EQ(arena.Allocate(5000), b);
  EXPECT_EQ(arena.Allocate(5000), a);
  for (void* block : {a, between, b, end}) arena.Deallocate(block);
}

TEST(Arena, RoundsUp) {
  FakeSource source;
  Arena arena(source, TestOptions());
  EXPECT_EQ(arena.RoundUp(0), kGranule);
  EXPECT_EQ(arena.RoundUp(1), kGranule);
  EXPECT_EQ(arena.RoundUp(kGranule), kGranule);
  EXPECT_EQ(arena.RoundUp(kGranule + 1), 2 * kGranule);
}

TEST(Arena, LargeRequestsGetRegionsOfTheirSize) {
  FakeSource source;
  Arena arena(source, TestOptions());
  void* block = arena.Allocate(10 * kRegion + 1);
  EXPECT_EQ(arena.stats().bytes_mapped, 10 * kRegion + kRegion / 32);
  arena.Deallocate(block);
}

TEST(Arena, OutOfMemoryIsNull) {
  FakeSource source;
  source.bytes_left = kRegion + kRegion / 2;
  Arena arena(source, TestOptions());
  EXPECT_EQ(arena.Allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(arena.Allocate(SIZE_MAX / 2), nullptr);
  void* a = arena.Allocate(kRegion);
  // The memory is too small for a complete region, but large enough for the request.
  void* b = arena.Allocate(kRegion / 4);
  EXPECT_NE(b, nullptr);
  EXPECT_EQ(arena.Allocate(kRegion), nullptr);
  arena.Deallocate(a);
  arena.Deallocate(b);
}

TEST(Arena, UnusedRegionsMakeRoomForALargerRequest) {
  FakeSource source;
  source.bytes_left = 2 * kRegion;
  Arena arena(source, TestOptions());
  void* a = arena.Allocate(kRegion);
  void* b = arena.Allocate(kRegion);
  arena.Deallocate(a);
  arena.Deallocate(b);
  void* c = arena.Allocate(2 * kRegion);
  EXPECT_NE(c, nullptr);
  arena.Deallocate(c);
}

TEST(Arena, KeepsTheOwnerOfABlock) {
  FakeSource source;
  Arena arena(source, TestOptions());
  int owner = 0;
  void* const owned = arena.Allocate(5000, &owner);
  void* const other = arena.Allocate(5000);
  EXPECT_EQ(arena.Deallocate(owned), &owner);
  EXPECT_EQ(arena.Deallocate(other), nullptr);
}

TEST(Arena, ReturnsWhatIsCachedRatherThanExceedTheMaximum) {
  FakeSource source;
  Arena arena(source, TestOptions());
  void* const small = arena.Allocate(kRegion);
  arena.Deallocate(small);
  EXPECT_EQ(arena.stats().bytes_cached, kRegion);
  // This block does not fit into the cached memory, and both together exceed the limit.
  void* const large = arena.Allocate(2 * kRegion, nullptr, 2 * kRegion);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(arena.stats().bytes_cached, 0);
  EXPECT_EQ(source.regions.size(), 1);
  arena.Deallocate(large);
  void* const again = arena.Allocate(2 * kRegion, nullptr, 2 * kRegion);
  EXPECT_EQ(again, large) << "what is cached is used";
  arena.Deallocate(again);
}

TEST(Arena, LimitHolds) {
  FakeSource source;
  Arena::Options options = TestOptions();
  options.bytes_limit = kRegion + kRegion / 2;
  Arena arena(source, options);
  void* a = arena.Allocate(kRegion);
  void* b = arena.Allocate(kRegion / 2);
  EXPECT_NE(b, nullptr);
  EXPECT_EQ(arena.Allocate(1), nullptr);
  arena.Deallocate(a);
  EXPECT_EQ(arena.Allocate(kRegion + 1), nullptr);
  arena.Deallocate(b);
}

TEST(Arena, CachedMemoryIsBounded) {
  for (bool can_discard : {true, false}) {
    FakeSource source;
    source.can_discard = can_discard;
    Arena::Options options = TestOptions();
    options.cached_bytes_max = 3 * kRegion;
    Arena arena(source, options);
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(arena.Allocate(kRegion / 4));
    void* pin = arena.Allocate(kGranule);  // a block that keeps its region in use
    for (void* block : blocks) arena.Deallocate(block);
    EXPECT_LE(arena.stats().bytes_cached, 3 * kRegion);
    EXPECT_LE(source.regions.size(), 4);
    arena.Deallocate(pin);
  }
}

TEST(Arena, DiscardedPartsOfAPinnedRegionAreNotCounted) {
  FakeSource source;
  Arena::Options options = TestOptions();
  options.cached_bytes_max = kRegion / 4;
  Arena arena(source, options);
  void* pin = arena.Allocate(kGranule);
  void* block = arena.Allocate(kRegion / 2);
  arena.Deallocate(block);
  EXPECT_EQ(source.discarded, kRegion - kGranule);  // joined with the untouched rest
  EXPECT_EQ(arena.stats().bytes_cached, 0);
  arena.Deallocate(pin);
}

TEST(Arena, UntouchedMemoryIsNotCached) {
  FakeSource source;
  Arena arena(source, TestOptions());
  void* block = arena.Allocate(kGranule);
  EXPECT_EQ(arena.stats().bytes_cached, 0);
  // Repeated use does not increase the touched memory.
  for (int i = 0; i < 10; ++i) {
    arena.Deallocate(block);
    EXPECT_EQ(arena.stats().bytes_cached, kGranule);
    block = arena.Allocate(kGranule);
  }
  arena.Deallocate(block);
}

TEST(ArenaDeathTest, FreedTwice) {
  FakeSource source;
  Arena arena(source, TestOptions());
  void* block = arena.Allocate(1);
  void* other = arena.Allocate(1);
  arena.Deallocate(block);
  EXPECT_DEATH(arena.Deallocate(block), "not in use");
  arena.Deallocate(other);
}

// Random sizes: no two blocks overlap, and in the end all memory is one block again.
TEST(Arena, RandomStory) {
  FakeSource source;
  Arena::Options options = TestOptions();
  options.cached_bytes_max = 4 * kRegion;
  Arena arena(source, options);
  std::mt19937 random(1);
  std::map<char*, size_t> blocks;
  for (int step = 0; step < 20000; ++step) {
    if (blocks.size() < 50 || (random() % 2 == 0 && blocks.size() < 200)) {
      const size_t bytes = random() % 10 == 0 ? random() % (3 * kRegion) : random() % 5000;
      char* block = static_cast<char*>(arena.Allocate(bytes));
      ASSERT_NE(block, nullptr);
      const auto [it, inserted] = blocks.emplace(block, arena.RoundUp(bytes));
      ASSERT_TRUE(inserted);
      const auto next = std::next(it);
      if (next != blocks.end()) {
        ASSERT_LE(block + it->second, next->first);
      }
      if (it != blocks.begin()) {
        ASSERT_LE(std::prev(it)->first + std::prev(it)->second, block);
      }
    } else {
      const auto it = std::next(blocks.begin(), random() % blocks.size());
      arena.Deallocate(it->first);
      blocks.erase(it);
    }
  }
  for (const auto& [block, bytes] : blocks) arena.Deallocate(block);
  EXPECT_EQ(arena.stats().bytes_in_use, 0);
}

TEST(Arena, ManyThreadsOnRealPages) {
  Arena arena(HugePages(), {.region_bytes = 4 << 20, .cached_bytes_max = 8 << 20});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        const size_t bytes = random() % (1 << 20) + 1;
        char* block = static_cast<char*>(arena.Allocate(bytes));
        ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0);
        block[0] = block[bytes - 1] = static_cast<char>(t);
        std::this_thread::yield();
        ASSERT_EQ(block[0], t);
        ASSERT_EQ(block[bytes - 1], t);
        arena.Deallocate(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.stats().bytes_in_use, 0);
}

TEST(HugePages, DiscardedMemoryReadsAsZero) {
  constexpr size_t kBytes = 4 << 20;
  char* region = static_cast<char*>(HugePages().Map(kBytes));
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(region) % (2 << 20), 0);
  memset(region, 1, kBytes);
  EXPECT_TRUE(HugePages().Discard(region + 4096, 4096));
  EXPECT_EQ(region[4095], 1);
  EXPECT_EQ(region[4096], 0);
  EXPECT_EQ(region[8192], 1);
  HugePages().Unmap(region, kBytes);
  volatile size_t impossible = SIZE_MAX - 4096;  // volatile: else the compiler warns
  EXPECT_EQ(HugePages().Map(impossible), nullptr);
  EXPECT_GT(MachineMemoryBytes(), size_t{64} << 20);
}

}  // namespace
}  // namespace penstock
