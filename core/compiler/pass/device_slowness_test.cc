// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/device_slowness.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

const DeviceName kDevice = *DeviceName::Parse("/job:a/replica:0/task:0/device:CPU:0");
const DeviceName kOther = *DeviceName::Parse("/job:a/replica:0/task:1/device:CPU:0");

TEST(DeviceSlownessTest, IsTheRatioOfRecentSteps) {
  DeviceSlowness slowness;
  EXPECT_EQ(slowness.Of(kDevice), 1);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(slowness.Of(kDevice), 1) << step << " steps tell nothing";
    slowness.Add(kDevice, 200, 100);
  }
  EXPECT_DOUBLE_EQ(slowness.Of(kDevice), 2);
  EXPECT_EQ(slowness.Of(kOther), 1);
}

// A scheduler stops the device for half of each period, so some steps run at full speed.
TEST(DeviceSlownessTest, StepsThatWereStoppedCountWithThoseThatWereNot) {
  DeviceSlowness slowness;
  for (int step = 0; step < 12; ++step) slowness.Add(kDevice, step % 3 == 0 ? 400 : 100, 100);
  EXPECT_DOUBLE_EQ(slowness.Of(kDevice), (3 * 400 + 8 * 100) / 1100.0) << "but for the slowest";
}

TEST(DeviceSlownessTest, OneHiccupDoesNotCount) {
  DeviceSlowness slowness;
  slowness.Add(kDevice, 100, 100);
  slowness.Add(kDevice, 1e9, 100);
  slowness.Add(kDevice, 110, 100);
  EXPECT_EQ(slowness.Of(kDevice), 1);
  // The second outlier counts, but at most as kFactorMax.
  slowness.Add(kDevice, 1e9, 100);
  EXPECT_DOUBLE_EQ(slowness.Of(kDevice), (100 + 110 + 800) / 300.0);
}

TEST(DeviceSlownessTest, OldStepsAreForgotten) {
  DeviceSlowness slowness;
  for (int step = 0; step < 12; ++step) slowness.Add(kDevice, 300, 100);
  EXPECT_DOUBLE_EQ(slowness.Of(kDevice), 3);
  for (int step = 0; step < 12; ++step) slowness.Add(kDevice, 105, 100);
  EXPECT_EQ(slowness.Of(kDevice), 1);
}

TEST(DeviceSlownessTest, WhatIsLearntOfNodesIsNotCountedTwice) {
  DeviceSlowness slowness;
  for (int step = 0; step < 12; ++step) slowness.Add(kDevice, 400, 100);
  slowness.Rescale(kDevice, 2);
  slowness.Rescale(kOther, 2);
  EXPECT_DOUBLE_EQ(slowness.Of(kDevice), 2);
  slowness.Add(kOther, 100, 0);
  EXPECT_EQ(slowness.Of(kOther), 1) << "nothing was known";
}

}  // namespace
}  // namespace penstock
