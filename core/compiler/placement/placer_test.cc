// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/placer.h"

#include <map>
#include <string>
#include <vector>

#include "core/compiler/testing/world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(PlaceTest, ConstraintsDefaultsAndSharedState) {
  World w;
  Node* var = w.Add("var", "Var", {}, {.device = "/job:ps/task:0"});
  Node* x = w.Add("x", "Input");
  Node* update = w.Add("update", "Update", {{var, 0}, {x, 0}});
  w.Add("beside", "Input", {}, {.attrs = {{"_class", std::vector<std::string>{"loc:@var"}}}});
  w.Add("far", "Input", {}, {.device = "/job:worker/task:1"});
  const auto partitions = w.Compile({}, {"beside:0", "far:0"}, {"update"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(w.DeviceOf("var"), kPs);
  EXPECT_EQ(w.DeviceOf("update"), kPs) << "an update sits with its variable";
  EXPECT_EQ(w.DeviceOf("beside"), kPs);
  EXPECT_EQ(w.DeviceOf("x"), kWorker) << "no job named: the client's task";
  EXPECT_EQ(w.DeviceOf("far"), kWorker1);
}

TEST(PlaceTest, ErrorsNameNodesAndConstraints) {
  {
    World w;
    w.Add("lost", "Input", {}, {.device = "/job:ps/task:9"});
    const Status s = w.Compile({}, {"lost:0"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("operation lost:"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("/job:ps/task:9"));
    EXPECT_THAT(std::string(s.message()), HasSubstr(kPs)) << "lists what there is";
  }
  {
    World w;
    Node* var = w.Add("var", "Var", {}, {.device = "/job:ps/task:0"});
    Node* x = w.Add("x", "Input");
    w.Add("update", "Update", {{var, 0}, {x, 0}}, {.device = "/job:worker/task:1"});
    const Status s = w.Compile({}, {}, {"update"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("'var' asks for device '/job:ps/task:0'"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("'update' for '/job:worker/task:1'"));
  }
  {
    World w;
    w.Add("x", "Input", {}, {.device = "/device:GPU:0"});
    const Status s = w.Compile({}, {"x:0"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("allow_soft_placement"));
  }
}

TEST(PlaceTest, SoftPlacementTakesTheCpuOfTheSameTask) {
  World w;
  w.options.allow_soft_placement = true;
  w.Add("x", "Input", {}, {.device = "/job:ps/task:0/device:GPU:3"});
  ASSERT_TRUE(w.Compile({}, {"x:0"}).ok());
  EXPECT_EQ(w.DeviceOf("x"), kPs);
}

// Soft placement finds a device for each node of a group, and it must be the same one for all.
TEST(PlaceTest, SoftPlacementFindsADeviceForAllOfAGroup) {
  const Attrs beside_x = {{"_class", std::vector<std::string>{"loc:@x"}}};
  for (const char* first : {"Input", "Heavy"}) {
    World w;
    w.options.allow_soft_placement = true;
    DeviceInfo gpu = w.devices[1];
    gpu.name.type = "GPU";
    w.devices.push_back(gpu);
    const bool for_both = first == std::string("Heavy");
    std::vector<Endpoint> inputs;
    if (for_both) inputs.push_back({w.Add("in", "Input"), 0});
    Node* const x = w.Add("x", first, inputs, {.device = kWorker});
    w.Add("y", "OnGpu", {{x, 0}}, {.attrs = beside_x});
    const Status placed = w.Compile({}, {"y:0"}).status();
    if (for_both) {
      ASSERT_TRUE(placed.ok()) << placed;
      EXPECT_EQ(w.DeviceOf("x"), gpu.name.ToString());
      EXPECT_EQ(w.DeviceOf("y"), gpu.name.ToString());
    } else {
      EXPECT_EQ(placed.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(placed.message()),
                  HasSubstr("Cannot place nodes 'x', 'y', which must be on one device: 'x' (op "));
    }
  }
}

// The second worker is ten times as fast; messages cost nothing, or a lot.
TEST(PlaceTest, StatelessNodesGoWhereTheyEndSoonest) {
  for (const double transfer_ns : {1.0, 1e9}) {
    World w;
    CostTable costs;
    for (DeviceInfo& device : w.devices) {
      device.link_to_tasks = {.bytes_per_ns = 1e9, .latency_ns = transfer_ns};
      for (const char* node : {"x", "y"}) {
        costs.RecordNode(node, device.name, device.incarnation == 33 ? 100 : 1000);
      }
    }
    w.options.costs = &costs;
    Node* x = w.Add("x", "Input", {}, {.device = "/job:worker/task:0"});
    w.Add("y", "Heavy", {{x, 0}}, {.device = "/job:worker"});
    ASSERT_TRUE(w.Compile({}, {"y:0"}).ok());
    EXPECT_EQ(w.DeviceOf("y"), transfer_ns == 1.0 ? kWorker1 : kWorker);
  }
}

// Eight nodes that may run on either worker. The second one has become slow since they were timed.
TEST(PlaceTest, AThrottledWorkerGetsLess) {
  std::vector<int> on_second;
  for (const double slow : {1.0, 3.0}) {
    World w;
    CostTable costs;
    Node* const x = w.Add("x", "Input", {}, {.device = kWorker});
    for (DeviceInfo& device : w.devices) {
      device.link_to_tasks = {.bytes_per_ns = 1e9, .latency_ns = 10'000};
    }
    costs.RecordNode("x", *DeviceName::Parse(kWorker), 1000);
    std::vector<std::string> targets;
    for (int i = 0; i < 8; ++i) {
      const std::string name = StrCat("y", i);
      w.Add(name, "Heavy", {{x, 0}}, {.device = "/job:worker"});
      costs.RecordNode(name, *DeviceName::Parse(kWorker), 1'000'000);
      costs.RecordNode(name, *DeviceName::Parse(kWorker1), 1'000'000);
      targets.push_back(name);
    }
    // The recorded steps ran other nodes, so the known times of the nodes to be placed do not
    // change.
    costs.RecordNode("other", *DeviceName::Parse(kWorker1), 1000);
    for (int step = 0; step < 3; ++step) {
      costs.RecordStep(*DeviceName::Parse(kWorker1), {{"other", slow * 1000}});
    }
    w.options.costs = &costs;
    w.options.disabled_passes = {"merge"};  // all placements are the same
    ASSERT_TRUE(w.Compile({}, {}, targets).ok());
    on_second.push_back(0);
    for (int i = 0; i < 8; ++i) on_second.back() += w.DeviceOf(StrCat("y", i)) == kWorker1 ? 1 : 0;
  }
  EXPECT_EQ(on_second[0], 4);
  EXPECT_LE(on_second[1], 3);
  EXPECT_GE(on_second[1], 1) << "it is of use still";
}

TEST(PlaceTest, MeasurementsDoNotMoveState) {
  World w;
  CostTable costs;
  costs.RecordNode("var", *DeviceName::Parse(kWorker), 1e9);
  costs.RecordNode("var", *DeviceName::Parse(kWorker1), 1);
  w.options.costs = &costs;
  w.Add("var", "Var", {}, {.device = "/job:worker"});
  ASSERT_TRUE(w.Compile({}, {}, {"var"}).ok());
  EXPECT_EQ(w.DeviceOf("var"), kWorker);
}

TEST(PlaceTest, TheReportSaysWhy) {
  using Reason = PlacementReport::Reason;
  World w;
  Node* var = w.Add("var", "Var", {}, {.device = "/job:worker"});
  Node* x = w.Add("x", "Input", {}, {.device = kPs});
  Node* update = w.Add("update", "Update", {{var, 0}, {x, 0}});
  w.Add("y", "Heavy", {{x, 0}}, {.device = "/job:worker", .after = {update}});
  ASSERT_TRUE(w.Compile({}, {}, {"y"}).ok());
  const PlacementReport& report = w.report.placement;
  ASSERT_EQ(report.devices, (std::vector<std::string>{kPs, kWorker, kWorker1}));
  std::map<std::string, const PlacementReport::Group*> groups;
  for (const auto& group : report.groups) groups[group.node] = &group;
  ASSERT_EQ(groups.size(), 3u);

  EXPECT_EQ(groups["x"]->reason, Reason::kOnlyDevice);
  EXPECT_EQ(groups["x"]->device, 0);
  EXPECT_EQ(groups["var"]->reason, Reason::kHoldsState);
  EXPECT_EQ(groups["var"]->num_nodes, 2) << "with its update";
  EXPECT_EQ(groups["var"]->candidates.size(), 2u);
  const PlacementReport::Group& y = *groups["y"];
  EXPECT_EQ(y.reason, Reason::kEndsSoonest);
  ASSERT_EQ(y.candidates.size(), 2u);
  for (const PlacementReport::Candidate& candidate : y.candidates) {
    const bool chosen = candidate.device == y.device;
    const double other = y.candidates[candidate.device == y.candidates[0].device].end_ns;
    EXPECT_TRUE(chosen ? candidate.end_ns <= other : candidate.end_ns >= other);
  }
  EXPECT_THAT(ToString(w.report), HasSubstr("var and 1 more @ /job:worker/replica:0/task:0/"
                                            "device:CPU:0: holds state"));
}

}  // namespace
}  // namespace penstock
