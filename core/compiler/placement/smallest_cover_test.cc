// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/smallest_cover.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SmallestCoverTest, TakesTheFirstOfTheSmallest) {
  EXPECT_THAT(SmallestCover({{true, false, false}, {false, true, true}, {true, true, true}}),
              ElementsAre(2));
  EXPECT_THAT(SmallestCover({{true, false}, {true, false}, {false, true}, {false, true}}),
              ElementsAre(0, 2));
  EXPECT_THAT(SmallestCover({{false, false}, {true, false}}), ElementsAre(0, 1)) << "there is none";
  EXPECT_THAT(SmallestCover({}), IsEmpty());
}

// Tries all subsets of random sets.
TEST(SmallestCoverTest, IsAsSmallAsCanBe) {
  std::mt19937 random(1);
  int covered = 0;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const int elements = 1 + static_cast<int>(random() % 6), count = 1 + random() % 8;
    std::vector<std::vector<bool>> sets(count);
    for (auto& set : sets) {
      for (int x = 0; x < elements; ++x) set.push_back(random() % 3 == 0);
    }
    const auto covers = [&](uint32_t chosen) {
      for (int x = 0; x < elements; ++x) {
        bool found = false;
        for (int i = 0; i < count; ++i) found |= (chosen >> i & 1) != 0 && sets[i][x];
        if (!found) return false;
      }
      return true;
    };
    int best = count + 1;
    for (uint32_t chosen = 0; chosen < 1u << count; ++chosen) {
      if (covers(chosen)) best = std::min(best, std::popcount(chosen));
    }
    const std::vector<int> found = SmallestCover(sets);
    if (best > count) {
      EXPECT_EQ(found.size(), sets.size());
      continue;
    }
    ++covered;
    uint32_t chosen = 0;
    for (const int i : found) chosen |= 1u << i;
    EXPECT_TRUE(covers(chosen));
    if (best <= 4) {
      EXPECT_EQ(static_cast<int>(found.size()), best);
    }
  }
  EXPECT_GT(covered, 500);
}

}  // namespace
}  // namespace penstock
