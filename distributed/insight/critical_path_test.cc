// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/critical_path.h"

#include <numeric>

#include "core/runtime/timeline_label.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr char kPsDevice[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorkerDevice[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr int64_t kMicro = 1'000;

// Returns the row of a node. All times are in microseconds.
NodeStats RanMicros(const std::string& label, int64_t ready, int64_t start, int64_t end) {
  NodeStats row{.node = label.substr(0, label.find(" = ")),
                .scheduled_ns = ready * kMicro,
                .start_ns = start * kMicro,
                .end_ns = end * kMicro};
  ParseTimelineLabel(label, &row);
  return row;
}

NodeStats Arrived(NodeStats::Transfer transfer, int64_t bytes) {
  return {.node = kTransferStats, .transfer = std::move(transfer), .outputs = {{.bytes = bytes}}};
}

ClusterTrace::Step Step(int64_t start, int64_t end, std::vector<DeviceStats> devices) {
  return {.master = "/job:worker/replica:0/task:0",
          .start_ns = start * kMicro,
          .end_ns = end * kMicro,
          .devices = std::move(devices)};
}

std::vector<std::string> PathOf(const ClusterTrace::Step& step) {
  std::vector<std::string> path;
  int64_t now_ns = step.start_ns;
  for (const PathSegment& segment : CriticalPath(TracedRows(step))) {
    EXPECT_EQ(segment.start_ns, now_ns) << "nothing is left out or counted twice";
    now_ns = segment.end_ns;
    constexpr const char* kNames[] = {"ran", "waited", "queued", "transfer", "gap"};
    path.push_back(StrCat(segment.nanos() / kMicro, " ", kNames[segment.kind], " ", segment.what));
  }
  EXPECT_EQ(now_ns, step.end_ns);
  return path;
}

TEST(CriticalPathTest, AStepWithoutRowsIsAGap) {
  EXPECT_THAT(PathOf(Step(10, 30, {})), ElementsAre("20 gap before the first node"));
}

TEST(CriticalPathTest, GoesBackToTheInputThatEndedLast) {
  EXPECT_THAT(
      PathOf(Step(0, 100,
                  {{kWorkerDevice,
                    {RanMicros("a = Const()", 5, 5, 6), RanMicros("slow = MatMul(a, a)", 7, 10, 60),
                     RanMicros("quick = Relu(a)", 7, 7, 8), RanMicros("later = Log(a)", 7, 70, 75),
                     RanMicros("sum = AddV2(quick, slow:1, ^later2)", 62, 65, 90)}}})),
      ElementsAre("5 gap before the first node", "1 ran Const", "1 gap between nodes",
                  "3 queued MatMul", "50 ran MatMul", "2 gap between nodes", "3 queued AddV2",
                  "25 ran AddV2", "10 gap after the last node"));
}

TEST(CriticalPathTest, ControlInputsAreWaitedForToo) {
  EXPECT_THAT(PathOf(Step(0, 30,
                          {{kWorkerDevice,
                            {RanMicros("a = Relu(x)", 0, 0, 5),
                             RanMicros("update = AssignAdd(v)", 0, 0, 20),
                             RanMicros("b = Relu(a, ^update)", 20, 20, 30)}}})),
              ElementsAre("20 ran AssignAdd", "10 ran Relu"));
}

// The worker waits for a variable that the ps sends late.
TEST(CriticalPathTest, CrossesTasksAlongTransfers) {
  const std::string edge = StrCat("edge_3_w:0 @", kWorkerDevice);
  const auto step = Step(
      0, 100,
      {{kPsDevice,
        {RanMicros("w = VariableV2()", 10, 12, 14), RanMicros("slow = Identity(w)", 14, 14, 40),
         RanMicros("_send_w_0 = _Send(slow, " + edge + ")", 40, 40, 41)}},
       {kWorkerDevice,
        {RanMicros("x = Placeholder()", 2, 2, 3),
         RanMicros("_recv_w_0 = _Recv(" + edge + ")", 2, 2, 61),
         Arrived({.edge = "edge_3_w:0", .from = kPsDevice, .to = kWorkerDevice}, 200),
         RanMicros("y = MatMul(x, _recv_w_0)", 62, 64, 95)}}});
  EXPECT_THAT(PathOf(step),
              ElementsAre("10 gap before the first node", "2 queued VariableV2", "2 ran VariableV2",
                          "26 ran Identity", "1 ran _Send", "20 transfer w:0 from /job:ps/task:0",
                          "1 gap between nodes", "2 queued MatMul", "31 ran MatMul",
                          "5 gap after the last node"));
  const TracedRows rows(step);
  ASSERT_EQ(rows.transfers().size(), 1u);
  EXPECT_EQ(rows.transfers()[0].bytes, 200) << "those that travelled";
  EXPECT_EQ(rows.transfers()[0].from, kPsDevice);
  EXPECT_EQ(rows.transfers()[0].to, kWorkerDevice);
}

// The tensor was sent before the _Recv asked for it. The time before the request is not part of the
// transfer.
TEST(CriticalPathTest, ATensorThatCameEarlyIsNotWaitedFor) {
  const std::string edge = StrCat("edge_3_w:0 @", kWorkerDevice);
  EXPECT_THAT(PathOf(Step(0, 60,
                          {{kPsDevice, {RanMicros("_send_w_0 = _Send(w, " + edge + ")", 1, 1, 2)}},
                           {kWorkerDevice,
                            {RanMicros("slow = MatMul(a, b)", 0, 0, 50),
                             RanMicros("_recv_w_0 = _Recv(" + edge + ", ^slow)", 50, 51, 55)}}})),
              ElementsAre("50 ran MatMul", "1 queued _Recv", "4 transfer w:0 from /job:ps/task:0",
                          "5 gap after the last node"));
}

TEST(CriticalPathTest, OpsThatWaitForOthersDoNotCompute) {
  for (const char* op : {"QueueDequeueV2", "SparseAccumulatorTakeGradient", "Unstage", "MutexLock",
                         "ResourceAccumulatorTakeGradient", "CollectiveReduceV2", "_Recv"}) {
    const std::string label = StrCat("d = ", op, "(q)");
    EXPECT_THAT(PathOf(Step(0, 20, {{kWorkerDevice, {RanMicros(label, 0, 0, 20)}}})),
                ElementsAre(StrCat("20 waited ", op)));
  }
}

// In a loop, a node runs once in each iteration, and each run waits for the one
// before.
TEST(CriticalPathTest, GoesRoundLoops) {
  EXPECT_THAT(PathOf(Step(0, 40,
                          {{kWorkerDevice,
                            {RanMicros("merge = Merge(next)", 0, 0, 1),
                             RanMicros("body = Mul(merge)", 1, 1, 10),
                             RanMicros("next = NextIteration(body)", 10, 10, 11),
                             RanMicros("merge = Merge(next)", 11, 11, 12),
                             RanMicros("body = Mul(merge)", 12, 12, 30),
                             RanMicros("next = NextIteration(body)", 30, 30, 40)}}})),
              ElementsAre("1 ran Merge", "9 ran Mul", "1 ran NextIteration", "1 ran Merge",
                          "18 ran Mul", "10 ran NextIteration"));
}

// The rows have no length and seem to wait for each other, and the tasks' clocks disagree.
TEST(CriticalPathTest, EndsHoweverTheTimesAre) {
  EXPECT_THAT(
      PathOf(Step(10, 20,
                  {{kWorkerDevice,
                    {RanMicros("a = Relu(b)", 15, 15, 15), RanMicros("b = Relu(a)", 15, 15, 15)}},
                   {kPsDevice,
                    {RanMicros("c = Relu(d)", 90, 95, 99), RanMicros("d = Relu(c)", 1, 2, 3)}}})),
      ElementsAre("10 gap between nodes"));
}

}  // namespace
}  // namespace penstock
