// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cluster_trace.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kWorker0[] = "/job:worker/replica:0/task:0";
constexpr char kWorker1[] = "/job:worker/replica:0/task:1";

NodeStats Row(int64_t ready_ns, int64_t start_ns, int64_t end_ns) {
  return {.node = "n", .scheduled_ns = ready_ns, .start_ns = start_ns, .end_ns = end_ns};
}

// Workers that are masters do not read each other's clocks, but both read the clock of the ps.
TEST(ClusterTraceTest, ClocksAreComparedAlongReadingsInBothDirections) {
  const ClusterTrace trace{.asked = kWorker0,
                           .masters = {{.task = kPs}, {.task = kWorker0}, {.task = kWorker1}},
                           .readings = {{kWorker0, kPs, 1'000, 10}, {kWorker1, kPs, -400, 25}}};
  const auto clocks = CompareClocks(trace);
  ASSERT_EQ(clocks.size(), 3u);
  EXPECT_EQ(clocks.at(kWorker0).offset_ns, 0);
  EXPECT_EQ(clocks.at(kWorker0).error_ns, 0);
  EXPECT_EQ(clocks.at(kPs).offset_ns, 1'000);
  EXPECT_EQ(clocks.at(kPs).error_ns, 10);
  EXPECT_EQ(clocks.at(kWorker1).offset_ns, 1'400);
  EXPECT_EQ(clocks.at(kWorker1).error_ns, 35) << "errors add up";
}

TEST(ClusterTraceTest, TheWayWithTheSmallestErrorCounts) {
  const ClusterTrace trace{.asked = kWorker0,
                           .masters = {{.task = kPs}},
                           .readings = {{kWorker0, kWorker1, 5'000, 300},
                                        {kWorker0, kPs, 1'000, 10},
                                        {kWorker1, kPs, -3'900, 20},
                                        {kPs, kWorker0, -1'010, 40}}};
  EXPECT_EQ(CompareClocks(trace).at(kWorker1).offset_ns, 4'900);
  EXPECT_EQ(CompareClocks(trace).at(kWorker1).error_ns, 30);
}

TEST(ClusterTraceTest, TimesOfTasksThatWereNeverComparedStay) {
  ClusterTrace trace{.asked = kWorker0, .readings = {{kWorker0, kWorker1, 100, 1}}};
  trace.steps.push_back(
      {.master = kWorker1,
       .start_ns = 1'100,
       .end_ns = 1'900,
       .devices = {{StrCat(kWorker1, "/device:CPU:0"), {Row(1'200, 1'300, 1'400)}},
                   {StrCat(kPs, "/device:CPU:0"), {Row(20, 30, 40)}}}});
  const auto clocks = CompareClocks(trace);
  EXPECT_LT(clocks.at(kPs).error_ns, 0);
  AlignTimes(clocks, &trace);
  const ClusterTrace::Step& step = trace.steps[0];
  EXPECT_EQ(step.start_ns, 1'000) << "the master's clock";
  EXPECT_EQ(step.end_ns, 1'800);
  const NodeStats& worker = step.devices[0].nodes[0];
  EXPECT_EQ(worker.scheduled_ns, 1'100);
  EXPECT_EQ(worker.start_ns, 1'200);
  EXPECT_EQ(worker.end_ns, 1'300);
  EXPECT_EQ(step.devices[1].nodes[0].start_ns, 30);
}

}  // namespace
}  // namespace penstock
