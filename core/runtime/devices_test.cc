// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/runtime/device.h"

namespace penstock {
namespace {

TEST(MakeDevicesTest, TheCpuIsTheFirst) {
  const auto devices =
      MakeDevices({.task = *DeviceName::Parse("/job:ps/task:3"), .incarnation = 5});
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->front()->name(), "/job:ps/replica:0/task:3/device:CPU:0");
  EXPECT_EQ(devices->front()->type(), "CPU");
  EXPECT_EQ(devices->front()->info().incarnation, 5u);
  EXPECT_GT(devices->front()->info().memory_limit, 0);
  for (const char* wrong : {"/job:ps", "/task:1", "/job:ps/task:0/device:CPU:0"}) {
    EXPECT_EQ(MakeDevices({.task = *DeviceName::Parse(wrong)}).status().code(),
              StatusCode::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace penstock
