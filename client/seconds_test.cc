// SPDX-License-Identifier: Apache-2.0
#include "client/seconds.h"

#include <gtest/gtest.h>

namespace penstock::client {
namespace {

constexpr int64_t kYearSeconds = 365 * 24 * 3600;

TEST(SecondsTest, FractionsAreKept) {
  EXPECT_EQ(Millis(0), 0);
  EXPECT_EQ(Millis(0.25), 250);
  EXPECT_EQ(Nanos(1.5), 1'500'000'000);
}

TEST(SecondsTest, NegativeIsZero) {
  EXPECT_EQ(Millis(-1), 0);
  EXPECT_EQ(Nanos(-1e300), 0);
}

TEST(SecondsTest, AtMostAYear) {
  EXPECT_EQ(Millis(1e300), kYearSeconds * 1000);
  EXPECT_EQ(Nanos(2.0 * kYearSeconds), kYearSeconds * 1'000'000'000);
}

}  // namespace
}  // namespace penstock::client
