// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/trace_events.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::Pair;

TEST(TraceEventsTest, BoxesThatOverlapHaveLanesOfTheirOwn) {
  TraceEvents events(1'000);
  const int ps = events.AddProcess("/job:ps/task:0");
  const int worker = events.AddProcess("/job:worker/task:0");
  events.Add(ps, "CPU:0", {"a", 1'000, 3'000});
  events.Add(ps, "CPU:0", {"b", 2'000, 4'000, {{"bytes", 7}}});
  events.Add(ps, "CPU:0", {"c", 3'000, 3'000});
  events.Add(ps, "transfers", {"\"w\":0 \xff", 3'500, 3'600});
  events.Add(worker, "CPU:0", {"d", 1'000, 2'000});

  const json file = json::parse(events.Json());
  std::map<std::string, std::string> lanes;
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> boxes;
  for (const json& event : file["traceEvents"]) {
    const int pid = event["pid"], tid = event["tid"];
    if (event["ph"] == "X") {
      boxes[{pid, tid}].emplace_back(event["ts"], event["dur"]);
      if (event["name"] == "b") {
        EXPECT_EQ(event["args"]["bytes"], 7);
      }
    } else {
      lanes[StrCat(event["name"].get<std::string>(), " ", pid, " ", tid)] = event["args"]["name"];
    }
  }
  EXPECT_THAT(lanes,
              ElementsAre(Pair("process_name 0 0", "/job:ps/task:0"),
                          Pair("process_name 1 0", "/job:worker/task:0"),
                          Pair("thread_name 0 1", "CPU:0"), Pair("thread_name 0 2", "CPU:0 #2"),
                          Pair("thread_name 0 3", "transfers"), Pair("thread_name 1 1", "CPU:0")));
  // Times are microseconds since the origin.
  EXPECT_THAT((boxes[{0, 1}]), ElementsAre(Pair(0, 2), Pair(2, 0)));
  EXPECT_THAT((boxes[{0, 2}]), ElementsAre(Pair(1, 2)));
  EXPECT_THAT((boxes[{0, 3}]), ElementsAre(Pair(2.5, testing::DoubleNear(0.1, 1e-9))));
  EXPECT_THAT((boxes[{1, 1}]), ElementsAre(Pair(0, 1)));
}

TEST(TraceEventsTest, AnArrowHasTwoEndsOfOneNumber) {
  TraceEvents events(0);
  const int process = events.AddProcess("p");
  const auto from = events.Add(process, "a", {"send", 1'000, 2'000});
  const auto to = events.Add(process, "b", {"receive", 5'000, 9'000});
  events.AddArrow(from, 1'000, to, 5'000);
  events.AddArrow(from, 1'000, to, 5'000);
  std::map<int, std::vector<std::string>> ends;
  const json file = json::parse(events.Json());
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    ends[event["id"]].push_back(StrCat(event["ph"].get<std::string>(), " ", event["tid"].get<int>(),
                                       " ", event["ts"].get<double>()));
  }
  EXPECT_THAT(ends, ElementsAre(Pair(0, ElementsAre("s 1 1", "f 2 5")),
                                Pair(1, ElementsAre("s 1 1", "f 2 5"))));
}

}  // namespace
}  // namespace penstock
