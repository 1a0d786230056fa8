// SPDX-License-Identifier: Apache-2.0
#include "core/op/noted_staleness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace penstock {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(NotedStalenessTest, CountsByDevice) {
  EXPECT_THAT(StalenessOf("staleness test").counts, Each(0));
  for (const int64_t staleness : {-1, 0, 1, 2, 3, 4, 1023, 1024, 9000}) {
    NoteStaleness("staleness test", staleness);
  }
  const NotedStaleness noted = StalenessOf("staleness test");
  EXPECT_EQ(noted.sum, 0 + 1 + 2 + 3 + 4 + 1023 + 1024 + 9000);
  EXPECT_THAT(noted.counts, ElementsAre(2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2));
  EXPECT_THAT(StalenessOf("another device").counts, Each(0));
}

TEST(NotedStalenessTest, TheSumDoesNotOverflow) {
  for (int i = 0; i < 3; ++i) {
    NoteStaleness("large staleness", std::numeric_limits<int64_t>::max());
  }
  EXPECT_EQ(StalenessOf("large staleness").counts.back(), 3);
  EXPECT_EQ(StalenessOf("large staleness").sum, int64_t{3} << 40);
}

}  // namespace
}  // namespace penstock
