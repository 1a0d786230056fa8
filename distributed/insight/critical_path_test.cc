// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/critical_path.h"

#include <numeric>

#include "core/runtime/timeline_label.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr int64_t kMicro = 1'000;

// Returns the row of a node. All times are in microseconds.
NodeStats Ran(const std::string& label, int64_t ready, int64_t start, int64_t end) {
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
  EXPECT_THAT(PathOf(Step(0, 100,
                          {{kWorker,
                            {Ran("a = Const()", 5, 5, 6), Ran("slow = MatMul(a, a)", 7, 10, 60),
                             Ran("quick = Relu(a)", 7, 7, 8), Ran("later = Log(a)", 7, 70, 75),
                             Ran("sum = AddV2(quick, slow:1, ^later2)", 62, 65, 90)}}})),
              ElementsAre("5 gap before the first node", "1 ran Const", "1 gap between nodes",
                          "3 queued MatMul", "50 ran MatMul", "2 gap between nodes",
                          "3 queued AddV2", "25 ran AddV2", "10 gap after the last node"));
}

TEST(CriticalPathTest, ControlInputsAreWaitedForToo) {
  EXPECT_THAT(PathOf(Step(0, 30,
                          {{kWorker,
                            {Ran("a = Relu(x)", 0, 0, 5), Ran("update = AssignAdd(v)", 0, 0, 20),
                             Ran("b = Relu(a, ^update)", 20, 20, 30)}}})),
              ElementsAre("20 ran AssignAdd", "10 ran Relu"));
}

// The worker waits for a variable that the ps sends late.
TEST(CriticalPathTest, CrossesTasksAlongTransfers) {
  const std::string edge = StrCat("edge_3_w:0 @", kWorker);
  const auto step =
      Step(0, 100,
           {{kPs,
             {Ran("w = VariableV2()", 10, 12, 14), Ran("slow = Identity(w)", 14, 14, 40),
              Ran("_send_w_0 = _Send(slow, " + edge + ")", 40, 40, 41)}},
            {kWorker,
             {Ran("x = Placeholder()", 2, 2, 3), Ran("_recv_w_0 = _Recv(" + edge + ")", 2, 2, 61),
              Arrived({.edge = "edge_3_w:0", .from = kPs, .to = kWorker}, 200),
              Ran("y = MatMul(x, _recv_w_0)", 62, 64, 95)}}});
  EXPECT_THAT(PathOf(step),
              ElementsAre("10 gap before the first node", "2 queued VariableV2", "2 ran VariableV2",
                          "26 ran Identity", "1 ran _Send", "20 transfer w:0 from /job:ps/task:0",
                          "1 gap between nodes", "2 queued MatMul", "31 ran MatMul",
                          "5 gap after the last node"));
  const TracedRows rows(step);
  ASSERT_EQ(rows.transfers().size(), 1u);
  EXPECT_EQ(rows.transfers()[0].bytes, 200) << "those that travelled";
  EXPECT_EQ(rows.transfers()[0].from, kPs);
  EXPECT_EQ(rows.transfers()[0].to, kWorker);
}

// The tensor was there before the _Recv asked for it: the time before that is not part of
// the transfer.
TEST(CriticalPathTest, ATensorThatCameEarlyIsNotWaitedFor) {
  const std::string edge = StrCat("edge_3_w:0 @", kWorker);
  EXPECT_THAT(PathOf(Step(0, 60,
                          {{kPs, {Ran("_send_w_0 = _Send(w, " + edge + ")", 1, 1, 2)}},
                           {kWorker,
                            {Ran("slow = MatMul(a, b)", 0, 0, 50),
                             Ran("_recv_w_0 = _Recv(" + edge + ", ^slow)", 50, 51, 55)}}})),
              ElementsAre("50 ran MatMul", "1 queued _Recv", "4 transfer w:0 from /job:ps/task:0",
                          "5 gap after the last node"));
}

TEST(CriticalPathTest, OpsThatWaitForOthersDoNotCompute) {
  for (const char* op : {"QueueDequeueV2", "SparseAccumulatorTakeGradient", "Unstage", "MutexLock",
                         "ResourceAccumulatorTakeGradient", "CollectiveReduceV2", "_Recv"}) {
    const std::string label = StrCat("d = ", op, "(q)");
    EXPECT_THAT(PathOf(Step(0, 20, {{kWorker, {Ran(label, 0, 0, 20)}}})),
                ElementsAre(StrCat("20 waited ", op)));
  }
}

// In a loop, a node runs once in each iteration, and each run waits for the one
// before.
TEST(CriticalPathTest, GoesRoundLoops) {
  EXPECT_THAT(
      PathOf(Step(0, 40,
                  {{kWorker,
                    {Ran("merge = Merge(next)", 0, 0, 1), Ran("body = Mul(merge)", 1, 1, 10),
                     Ran("next = NextIteration(body)", 10, 10, 11),
                     Ran("merge = Merge(next)", 11, 11, 12), Ran("body = Mul(merge)", 12, 12, 30),
                     Ran("next = NextIteration(body)", 30, 30, 40)}}})),
      ElementsAre("1 ran Merge", "9 ran Mul", "1 ran NextIteration", "1 ran Merge", "18 ran Mul",
                  "10 ran NextIteration"));
}

// Rows with zero length that seem to wait for each other, and clocks that disagree.
TEST(CriticalPathTest, EndsHoweverTheTimesAre) {
  EXPECT_THAT(
      PathOf(Step(10, 20,
                  {{kWorker, {Ran("a = Relu(b)", 15, 15, 15), Ran("b = Relu(a)", 15, 15, 15)}},
                   {kPs, {Ran("c = Relu(d)", 90, 95, 99), Ran("d = Relu(c)", 1, 2, 3)}}})),
      ElementsAre("10 gap between nodes"));
}

}  // namespace
}  // namespace penstock
