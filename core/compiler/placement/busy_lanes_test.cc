// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/busy_lanes.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(BusyLanesTest, TheFirstFreeLaneIsTaken) {
  BusyLanes lanes(2, 10);
  EXPECT_EQ(lanes.StartFor(0, 100), 10);
  lanes.Take(10, 100);
  EXPECT_EQ(lanes.StartFor(0, 100), 10) << "the other lane";
  lanes.Take(10, 50);
  EXPECT_EQ(lanes.StartFor(0, 100), 60);
  EXPECT_EQ(lanes.StartFor(70, 100), 70);
}

TEST(BusyLanesTest, GapsAreFilled) {
  BusyLanes lanes(1, 0);
  lanes.Take(100, 50);  // waited for its inputs
  EXPECT_EQ(lanes.StartFor(0, 100), 0);
  EXPECT_EQ(lanes.StartFor(0, 101), 150) << "does not fit";
  EXPECT_EQ(lanes.StartFor(1, 100), 150) << "does not fit";
  lanes.Take(20, 30);
  EXPECT_EQ(lanes.StartFor(0, 20), 0) << "before";
  EXPECT_EQ(lanes.StartFor(0, 50), 50) << "behind";
  EXPECT_EQ(lanes.StartFor(0, 51), 150);
}

TEST(BusyLanesTest, OldGapsAreForgotten) {
  BusyLanes lanes(1, 0);
  for (int i = 0; i < 100; ++i) lanes.Take(100 * i + 50, 50);
  EXPECT_GT(lanes.StartFor(0, 50), 0);
  EXPECT_LT(lanes.StartFor(0, 50), 10'000) << "but not the last ones";
}

}  // namespace
}  // namespace penstock
