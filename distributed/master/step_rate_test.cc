// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/step_rate.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kRateSecond = 1'000'000'000;

TEST(StepRateTest, CountsSinceTheSampleBeforeTheLast) {
  StepRate rate;
  EXPECT_EQ(rate.PerSecond(kRateSecond, 100), 0) << "no sample";
  rate.Sample(kRateSecond, 100);
  EXPECT_EQ(rate.PerSecond(2 * kRateSecond, 150), 50) << "since the only sample";
  rate.Sample(2 * kRateSecond, 150);
  EXPECT_EQ(rate.PerSecond(3 * kRateSecond, 300), 100) << "since the first of two";
  rate.Sample(4 * kRateSecond, 350);
  EXPECT_EQ(rate.PerSecond(6 * kRateSecond, 350), 50) << "since the second of three";
}

TEST(StepRateTest, ANumberThatHasFallenIsNoRate) {
  StepRate rate;
  rate.Sample(kRateSecond, 100);
  EXPECT_EQ(rate.PerSecond(2 * kRateSecond, 90), 0);
  EXPECT_EQ(rate.PerSecond(kRateSecond, 200), 0) << "no time has passed";
}

}  // namespace
}  // namespace penstock
