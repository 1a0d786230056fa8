// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/timeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TimelineTest, ABoxForEachNodeAndTransfer) {
  PlacementReport report;
  report.devices = {"/job:a/device:CPU:0", "/job:b/device:CPU:0"};
  report.step_ns = 2000;
  report.least_ns = 1500;
  report.runs = {{"first", 0, 0, 0, 1000}, {"a<b", 1, 0, 1500, 2000}};
  report.transfers = {{"first", 0, 1, 64, 1000, 1500}};
  const std::string svg = TimelineSvg(report);
  EXPECT_THAT(svg, HasSubstr("predicted step: 2.0 us, at least 1.5 us"));
  EXPECT_THAT(svg, HasSubstr("first: 0.00 to 1.00 us"));
  EXPECT_THAT(svg, HasSubstr("first: 1.00 to 1.50 us, 64 bytes from /job:a/device:CPU:0"));
  EXPECT_THAT(svg, HasSubstr("/job:b/device:CPU:0 receives"));
  EXPECT_THAT(svg, HasSubstr("a&lt;b: 1.50 to 2.00 us"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
}

}  // namespace
}  // namespace penstock
