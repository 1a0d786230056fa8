// SPDX-License-Identifier: Apache-2.0
#include "kernels/dynamic_table/dropped_keys.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

std::vector<int64_t> After(const DroppedKeys& dropped, int32_t epoch) {
  std::vector<int64_t> keys;
  dropped.ForEachAfter(epoch, [&](int64_t key) { keys.push_back(key); });
  return keys;
}

TEST(DroppedKeys, KnowsTheKeysOfEachEpoch) {
  TableEpochs epochs;
  DroppedKeys dropped(epochs);
  dropped.Add(1, 10);  // not kept: no export has set a mark
  EXPECT_TRUE(dropped.HasAllAfter(0));
  epochs.now = 1;
  dropped.Add(2, 10);
  epochs.now = 2;
  dropped.Add(3, 10);
  EXPECT_EQ(After(dropped, 0), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(After(dropped, 1), (std::vector<int64_t>{3}));
  dropped.Forget();
  EXPECT_FALSE(dropped.HasAllAfter(1));
  EXPECT_TRUE(dropped.HasAllAfter(2));
}

TEST(DroppedKeys, ForgetsWhatNoExportNamesBeforeTheRest) {
  constexpr int64_t kLimit = 4096;
  TableEpochs epochs;
  epochs.now = 1;
  DroppedKeys dropped(epochs);
  for (int64_t key = 0; key < kLimit - 100; ++key) dropped.Add(key, 0);
  epochs.now = 2;
  epochs.oldest = 1;
  for (int64_t key = 0; key < 200; ++key) dropped.Add(key, 0);
  EXPECT_FALSE(dropped.HasAllAfter(0));
  EXPECT_TRUE(dropped.HasAllAfter(1));
  EXPECT_EQ(After(dropped, 1).size(), 200u);
  for (int64_t key = 0; key < kLimit; ++key) dropped.Add(key, 0);
  EXPECT_FALSE(dropped.HasAllAfter(1));
  EXPECT_LT(After(dropped, 1).size(), 400u);
  // The more rows a table has, the more keys it remembers.
  DroppedKeys large(epochs);
  for (int64_t key = 0; key < 3 * kLimit; ++key) large.Add(key, 4 * kLimit);
  EXPECT_TRUE(large.HasAllAfter(1));
}

}  // namespace
}  // namespace penstock
