// SPDX-License-Identifier: Apache-2.0
#include "core/op/task_name.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(TaskNameTest, IsAValue) {
  const auto name = TaskName::Parse("/job:ps/replica:0/task:17");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(*name, (TaskName{"ps", 0, 17}));
  EXPECT_NE(*name, (TaskName{"ps", 1, 17}));
  EXPECT_EQ(name->ToString(), "/job:ps/replica:0/task:17");
  EXPECT_EQ(*TaskName::OfDevice("/job:ps/replica:0/task:17/device:GPU:3"), *name);
  EXPECT_EQ(name->Device("GPU", 3).ToString(), "/job:ps/replica:0/task:17/device:GPU:3");
}

TEST(TaskNameTest, OnlyFullNames) {
  for (const char* text : {"", "/job:ps", "/job:ps/replica:0", "/job:ps/replica:0/task:*",
                           "/job:ps/replica:0/task:1/device:CPU:0", "ps:1"}) {
    EXPECT_EQ(TaskName::Parse(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  for (const char* text : {"", "/device:CPU:0", "/job:ps/replica:0/task:1",
                           "/job:ps/replica:0/task:1/device:CPU:*", "nonsense"}) {
    EXPECT_EQ(TaskName::OfDevice(text).status(),
              InvalidArgument("'", text, "' is not a full device name"));
  }
}

}  // namespace
}  // namespace penstock
