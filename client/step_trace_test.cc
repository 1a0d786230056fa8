// SPDX-License-Identifier: Apache-2.0
#include "client/step_trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/runtime/timeline_label.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using nlohmann::json;

constexpr char kPs[] = "/job:ps/task:0/device:CPU:0";

NodeStats Ran(const char* label, uint32_t thread, int64_t start_ns, int64_t end_ns) {
  NodeStats row{.scheduled_ns = start_ns, .start_ns = start_ns, .end_ns = end_ns, .thread = thread};
  ParseTimelineLabel(label, &row);
  return row;
}

json Written(const StepTrace& trace) {
  const std::string path = testing::TempDir() + "/trace.json";
  EXPECT_TRUE(trace.WriteJson(Env::Real(), path).ok());
  return json::parse(Env::Real().ReadFile(path).value_or(""));
}

TEST(StepTraceTest, TakesSoManyStepsFromTheFirstOn) {
  StepTrace trace({.first_step = 5, .steps = 2});
  EXPECT_FALSE(trace.Take(4));
  EXPECT_TRUE(trace.Take(7));
  EXPECT_TRUE(trace.Take(6));
  EXPECT_FALSE(trace.Take(8));
}

TEST(StepTraceTest, BusyIsWhoRunsOpsThatDoNotWait) {
  StepTrace trace({});
  EXPECT_EQ(trace.use().steps_under_way, 0);
  const NodeStats transfer{.node = kTransferStats, .start_ns = 1000, .end_ns = 1400, .thread = 1};
  trace.Add(
      {.step = 0,
       .start_ns = 1000,
       .end_ns = 1600,
       .devices = {{kPs,
                    {Ran("x = _Recv()", 1, 1000, 1400), transfer,
                     Ran("y = MatMul(x, w)", 2, 1400, 1500), Ran("z = Relu(y)", 2, 1500, 1550)}}}});
  trace.Add({.step = 1,
             .start_ns = 1200,
             .end_ns = 2000,
             .devices = {{kPs,
                          {Ran("q = QueueDequeueV2(queue)", 1, 1200, 1900),
                           Ran("y = MatMul(x, w)", 3, 1450, 1650)}}}});
  const StepTrace::Use use = trace.use();
  EXPECT_DOUBLE_EQ(use.seconds, 1000e-9);
  EXPECT_DOUBLE_EQ(use.steps_under_way, 1.4);
  ASSERT_EQ(use.busy.size(), 1);
  EXPECT_DOUBLE_EQ(use.busy.at(kPs), 0.25);  // busy from 1400 to 1650
  EXPECT_EQ(trace.Describe(),
            "2 steps in 0.00 s, 1.4 at a time; busy: /job:ps/task:0/device:CPU:0 25 %");
}

TEST(StepTraceTest, WhatIsUnderWayAtOnceHasLanesOfItsOwn) {
  StepTrace trace({});
  trace.Add({.step = 3,
             .start_ns = 1000,
             .end_ns = 2000,
             .devices = {{kPs,
                          {Ran("b = Relu(a)", 1, 1100, 1200), Ran("a = _Recv()", 1, 1050, 1500),
                           Ran("c = Relu(\xff)", 1, 1500, 1600)}}}});
  trace.Add({.step = 4, .start_ns = 1500, .end_ns = 2500, .devices = {}});
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> lanes;
  std::vector<std::string> processes;
  const json written = Written(trace);
  for (const json& event : written["traceEvents"]) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    lanes[{event["pid"], event["tid"]}].emplace_back(event["ts"], event["dur"]);
  }
  EXPECT_THAT(processes, testing::ElementsAre("steps", kPs));
  // Start and duration of each event, in microseconds since the first step's start.
  using Events = std::vector<std::pair<double, double>>;
  EXPECT_EQ((lanes[{0, 1}]), Events({{0, 1}}));
  EXPECT_EQ((lanes[{0, 2}]), Events({{0.5, 1}}));
  EXPECT_EQ((lanes[{1, 1}]), Events({{0.05, 0.45}, {0.5, 0.1}}));
  EXPECT_EQ((lanes[{1, 2}]), Events({{0.1, 0.1}}));
}

TEST(StepTraceTest, ATransferHasTheRoadByWhichItCame) {
  constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";
  constexpr char kWorkerGpu[] = "/job:worker/replica:0/task:0/device:GPU:0";
  constexpr char kServer[] = "/job:ps/replica:0/task:0/device:CPU:0";
  const auto transfer = [](const char* edge, const char* from, const char* to) {
    return NodeStats{.node = kTransferStats,
                     .transfer = {{.edge = edge, .from = from, .to = to}},
                     .start_ns = 1000,
                     .end_ns = 1400,
                     .outputs = {{.bytes = 8}}};
  };
  const auto received = [](const char* edge, const char* to) {
    return NodeStats{.node = "recv",
                     .op = "_Recv",
                     .transfer = {{.edge = edge, .from = "", .to = to}},
                     .start_ns = 1000,
                     .end_ns = 1400};
  };
  StepTrace trace({});
  trace.Add({.step = 0,
             .start_ns = 1000,
             .end_ns = 2000,
             .devices = {{kWorker, {received("w", kWorker), transfer("w", kServer, kWorker)}},
                         {kServer, {transfer("g", kWorker, kServer)}},
                         {kWorkerGpu, {received("x", kWorkerGpu)}}}});
  const auto roads = [&trace] {
    std::map<std::string, std::string> found;  // by the name of the event's node
    const json written = Written(trace);
    for (const json& event : written["traceEvents"]) {
      if (event["ph"] == "X" && event["args"].contains("road")) {
        found[event["args"]["node"]] = event["args"]["road"];
      }
    }
    return found;
  };
  const std::string local = TimelineLabel(received("x", kWorkerGpu));
  using Found = std::map<std::string, std::string>;
  EXPECT_FALSE(trace.has_roads());
  EXPECT_EQ(roads(), (Found{{local, "local"}}));
  trace.SetRoads({{{"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"}, "shm"}});
  EXPECT_TRUE(trace.has_roads());
  EXPECT_EQ(roads(),
            (Found{{local, "local"}, {TimelineLabel(transfer("w", kServer, kWorker)), "shm"}}));
}

}  // namespace
}  // namespace penstock::client
