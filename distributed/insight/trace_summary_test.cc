// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/trace_summary.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/testing/durations.h"
#include "core/runtime/timeline_label.h"
#include "distributed/insight/trace_timeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kTracedPs[] = "/job:ps/replica:0/task:0";
constexpr char kTracedWorker[] = "/job:worker/replica:0/task:0";

// Returns the row of a node. All times are in milliseconds.
NodeStats Ran(const std::string& label, int64_t start, int64_t end) {
  NodeStats row{.node = label.substr(0, label.find(" = ")),
                .scheduled_ns = start * kMilli,
                .start_ns = start * kMilli,
                .end_ns = end * kMilli,
                .thread = 4};
  ParseTimelineLabel(label, &row);
  return row;
}

// Returns a worker's step of `length` ms, most of which is a product; from 1 to 3 ms it
// waits for w.
ClusterTrace::Step TrainStep(int64_t begin, int64_t length) {
  const std::string ps = StrCat(kTracedPs, "/device:CPU:0"),
                    worker = StrCat(kTracedWorker, "/device:CPU:0");
  const std::string edge = StrCat("edge_3_w:0 @", worker);
  const NodeStats arrived{.node = kTransferStats,
                          .transfer = {{.edge = "edge_3_w:0", .from = ps, .to = worker}},
                          .outputs = {{.bytes = 100}}};
  NodeStats product = Ran("y = MatMul(x, _recv_w_0)", begin + 4, begin + length);
  product.scheduled_ns -= kMilli;
  return {
      .master = kTracedWorker,
      .session = "s",
      .fetches = {},
      .targets = {"train"},
      .start_ns = begin * kMilli,
      .end_ns = (begin + length) * kMilli,
      .devices = {
          {ps,
           {Ran("w = VariableV2()", begin, begin + 1),
            Ran("_send_w_0 = _Send(w, " + edge + ")", begin + 1, begin + 1)}},
          {worker, {Ran("_recv_w_0 = _Recv(" + edge + ")", begin, begin + 3), arrived, product}}}};
}

ClusterTrace Trace() {
  ClusterTrace trace{.asked = kTracedWorker,
                     .masters = {{.task = kTracedPs}, {.task = kTracedWorker, .sessions = 1}},
                     .readings = {{kTracedWorker, kTracedPs, 0, kMilli / 10}},
                     .protocols = {{{kTracedPs, kTracedWorker}, "shm"}}};
  for (const int64_t length : {10, 30, 20}) trace.steps.push_back(TrainStep(100 * length, length));
  // Adds a short step of another kind.
  trace.steps.push_back({.master = kTracedWorker,
                         .targets = {"save"},
                         .start_ns = 0,
                         .end_ns = kMilli,
                         .devices = {}});
  return trace;
}

TEST(TraceSummaryTest, CostsAreOfAllStepsAndATransferTakesTheTimeOnItsWay) {
  const std::vector<TracedCost> costs = CostsOf(Trace());
  ASSERT_EQ(costs.size(), 4u);
  EXPECT_EQ(costs[0].name, "y");
  EXPECT_EQ(costs[0].op, "MatMul");
  EXPECT_EQ(costs[0].task, kTracedWorker);
  EXPECT_EQ(costs[0].nanos, (6 + 26 + 16) * kMilli);
  EXPECT_EQ(costs[0].count, 3);
  EXPECT_EQ(costs[1].name, "w:0 from /job:ps/task:0");
  EXPECT_EQ(costs[1].op, "transfer by shm");
  EXPECT_EQ(costs[1].nanos, 3 * 2 * kMilli);
  EXPECT_EQ(costs[1].bytes, 300);
  EXPECT_EQ(costs[2].op, "VariableV2");
}

TEST(TraceSummaryTest, TheMedianStepIsOfTheKindThatTakesMostTime) {
  const ClusterTrace trace = Trace();
  EXPECT_EQ(MedianStep(trace), &trace.steps[2]);
  EXPECT_EQ(MedianStep({}), nullptr);
}

TEST(TraceSummaryTest, TheTextTellsSharesClocksAndThePath) {
  ClusterTrace trace = Trace();
  const auto clocks = CompareClocks(trace);
  const std::string text = TraceText(trace, clocks, 2);
  EXPECT_THAT(text, HasSubstr("Recorded 4 steps:\n"));
  EXPECT_THAT(text, HasSubstr("  /job:ps/task:0: is the master of no session\n"));
  EXPECT_THAT(text, HasSubstr("  /job:worker/task:0: 4 steps\n"));
  EXPECT_THAT(text, HasSubstr("  /job:ps/task:0: +0.000 ms, to within 0.100 ms\n"));
  EXPECT_THAT(text, HasSubstr("with their share of 61.000 ms:\n"
                              "  1.    48.000 ms   78.7 %     3x  y (MatMul) on "
                              "/job:worker/task:0\n"
                              "  2.     6.000 ms    9.8 %     3x  w:0 from /job:ps/task:0 "
                              "(transfer by shm, 300 B) on /job:worker/task:0\n\n"));
  EXPECT_THAT(text, HasSubstr("median step (target train, by /job:worker/task:0, 20.000 ms):\n"
                              "  85.0 %    17.000 ms  kernels\n"));
  EXPECT_THAT(text, HasSubstr("   5.0 %     1.000 ms  queueing: ready, without a thread\n"));
  EXPECT_THAT(text, HasSubstr("  10.0 %     2.000 ms  transfers\n"));
}

TEST(TraceSummaryTest, WhatIsMissingIsSaid) {
  ClusterTrace trace{
      .asked = kTracedWorker,
      .masters = {{.task = kTracedPs, .status = Unavailable("no route")},
                  {.task = kTracedWorker, .sessions = 1, .cut = "no more ran for 3 s"}}};
  const std::string text = TraceText(trace, CompareClocks(trace));
  EXPECT_THAT(text, HasSubstr("/job:ps/task:0: does not tell: no route\n"));
  EXPECT_THAT(text, HasSubstr("/job:worker/task:0: 0 steps; no more ran for 3 s\n"));
  EXPECT_THAT(text, HasSubstr("/job:ps/task:0: never compared; its times are by its own clock\n"));
}

TEST(TraceTimelineTest, HasAProcessForEachTaskAndBytesAndRoadOfTransfers) {
  const ClusterTrace trace = Trace();
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> lanes;
  std::map<std::string, json> boxes;  // by process, lane and name: the end of the last box
  int starts = 0, tips = 0;
  const json file = json::parse(TraceTimeline(trace, CompareClocks(trace)));
  for (const json& event : file["traceEvents"]) {
    const int pid = event["pid"], tid = event["tid"];
    if (event["name"] == "process_name") processes[pid] = event["args"]["name"];
    if (event["name"] == "thread_name") lanes[{pid, tid}] = event["args"]["name"];
    starts += event["ph"] == "s";
    tips += event["ph"] == "f";
    if (event["ph"] != "X") continue;
    boxes[StrCat(processes[pid], "; ", lanes[{pid, tid}], "; ", event["name"].get<std::string>())] =
        event;
  }
  EXPECT_EQ(processes.size(), 3u);
  const std::string ps = "/job:ps/task:0, clock moved by -0.000 ms, to within 0.100 ms; ";
  EXPECT_EQ(boxes.count(ps + "CPU:0 thread 4; _Send"), 1u);
  EXPECT_EQ(boxes.count("/job:worker/task:0; CPU:0 queueing; ready: y"), 1u);
  const json& transfer = boxes.at("/job:worker/task:0; receives; w:0");
  EXPECT_EQ(transfer["args"]["bytes"], 100);
  EXPECT_EQ(transfer["args"]["road"], "shm");
  EXPECT_EQ(transfer["dur"], 2'000);
  EXPECT_EQ(boxes.at("/job:worker/task:0; CPU:0 thread 4; MatMul")["args"]["queued_us"], 1'000);
  EXPECT_EQ(starts, 3);
  EXPECT_EQ(tips, 3);
}

}  // namespace
}  // namespace penstock
