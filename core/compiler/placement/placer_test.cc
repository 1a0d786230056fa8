// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/placer.h"

#include <map>
#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(PlaceTest, ConstraintsDefaultsAndSharedState) {
  TestProgram p;
  Node* var = p.Add("var", "Var", {}, {.device = "/job:ps/task:0"});
  Node* x = p.Add("x", "Input");
  Node* update = p.Add("update", "Update", {{var, 0}, {x, 0}});
  p.Add("beside", "Input", {}, {.attrs = {{"_class", std::vector<std::string>{"loc:@var"}}}});
  p.Add("far", "Input", {}, {.device = "/job:worker/task:1"});
  const auto partitions = p.Compile({}, {"beside:0", "far:0"}, {"update"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(p.DeviceOf("var"), kPs);
  EXPECT_EQ(p.DeviceOf("update"), kPs) << "an update sits with its variable";
  EXPECT_EQ(p.DeviceOf("beside"), kPs);
  EXPECT_EQ(p.DeviceOf("x"), kWorker) << "no job named: the client's task";
  EXPECT_EQ(p.DeviceOf("far"), kWorker1);
}

TEST(PlaceTest, ErrorsNameNodesAndConstraints) {
  {
    TestProgram p;
    p.Add("lost", "Input", {}, {.device = "/job:ps/task:9"});
    const Status s = p.Compile({}, {"lost:0"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("operation lost:"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("/job:ps/task:9"));
    EXPECT_THAT(std::string(s.message()), HasSubstr(kPs)) << "lists what there is";
  }
  {
    TestProgram p;
    Node* var = p.Add("var", "Var", {}, {.device = "/job:ps/task:0"});
    Node* x = p.Add("x", "Input");
    p.Add("update", "Update", {{var, 0}, {x, 0}}, {.device = "/job:worker/task:1"});
    const Status s = p.Compile({}, {}, {"update"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("'var' asks for device '/job:ps/task:0'"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("'update' for '/job:worker/task:1'"));
  }
  {
    TestProgram p;
    p.Add("x", "Input", {}, {.device = "/device:GPU:0"});
    const Status s = p.Compile({}, {"x:0"}).status();
    EXPECT_THAT(std::string(s.message()), HasSubstr("allow_soft_placement"));
  }
}

TEST(PlaceTest, SoftPlacementTakesTheCpuOfTheSameTask) {
  TestProgram p;
  p.options.allow_soft_placement = true;
  p.Add("x", "Input", {}, {.device = "/job:ps/task:0/device:GPU:3"});
  ASSERT_TRUE(p.Compile({}, {"x:0"}).ok());
  EXPECT_EQ(p.DeviceOf("x"), kPs);
}

// Soft placement finds a device for each node of a group, and it must be the same one for all.
TEST(PlaceTest, SoftPlacementFindsADeviceForAllOfAGroup) {
  const Attrs beside_x = {{"_class", std::vector<std::string>{"loc:@x"}}};
  for (const char* first : {"Input", "Heavy"}) {
    TestProgram p;
    p.options.allow_soft_placement = true;
    DeviceInfo gpu = p.devices[1];
    gpu.name.type = "GPU";
    p.devices.push_back(gpu);
    const bool for_both = first == std::string("Heavy");
    std::vector<Endpoint> inputs;
    if (for_both) inputs.push_back({p.Add("in", "Input"), 0});
    Node* const x = p.Add("x", first, inputs, {.device = kWorker});
    p.Add("y", "OnGpu", {{x, 0}}, {.attrs = beside_x});
    const Status placed = p.Compile({}, {"y:0"}).status();
    if (for_both) {
      ASSERT_TRUE(placed.ok()) << placed;
      EXPECT_EQ(p.DeviceOf("x"), gpu.name.ToString());
      EXPECT_EQ(p.DeviceOf("y"), gpu.name.ToString());
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
    TestProgram p;
    CostTable costs;
    for (DeviceInfo& device : p.devices) {
      device.link_to_tasks = {.bytes_per_ns = 1e9, .latency_ns = transfer_ns};
      for (const char* node : {"x", "y"}) {
        costs.RecordNode(node, device.name, device.incarnation == 33 ? 100 : 1000);
      }
    }
    p.options.costs = &costs;
    Node* x = p.Add("x", "Input", {}, {.device = "/job:worker/task:0"});
    p.Add("y", "Heavy", {{x, 0}}, {.device = "/job:worker"});
    ASSERT_TRUE(p.Compile({}, {"y:0"}).ok());
    EXPECT_EQ(p.DeviceOf("y"), transfer_ns == 1.0 ? kWorker1 : kWorker);
  }
}

// Eight nodes that may run on either worker. The second one has become slow since they were timed.
TEST(PlaceTest, AThrottledWorkerGetsLess) {
  std::vector<int> on_second;
  for (const double slow : {1.0, 3.0}) {
    TestProgram p;
    CostTable costs;
    Node* const x = p.Add("x", "Input", {}, {.device = kWorker});
    for (DeviceInfo& device : p.devices) {
      device.link_to_tasks = {.bytes_per_ns = 1e9, .latency_ns = 10'000};
    }
    costs.RecordNode("x", *DeviceName::Parse(kWorker), 1000);
    std::vector<std::string> targets;
    for (int i = 0; i < 8; ++i) {
      const std::string name = StrCat("y", i);
      p.Add(name, "Heavy", {{x, 0}}, {.device = "/job:worker"});
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
    p.options.costs = &costs;
    p.options.disabled_passes = {"merge"};  // all placements are the same
    ASSERT_TRUE(p.Compile({}, {}, targets).ok());
    on_second.push_back(0);
    for (int i = 0; i < 8; ++i) on_second.back() += p.DeviceOf(StrCat("y", i)) == kWorker1 ? 1 : 0;
  }
  EXPECT_EQ(on_second[0], 4);
  EXPECT_LE(on_second[1], 3);
  EXPECT_GE(on_second[1], 1) << "it is of use still";
}

TEST(PlaceTest, MeasurementsDoNotMoveState) {
  TestProgram p;
  CostTable costs;
  costs.RecordNode("var", *DeviceName::Parse(kWorker), 1e9);
  costs.RecordNode("var", *DeviceName::Parse(kWorker1), 1);
  p.options.costs = &costs;
  p.Add("var", "Var", {}, {.device = "/job:worker"});
  ASSERT_TRUE(p.Compile({}, {}, {"var"}).ok());
  EXPECT_EQ(p.DeviceOf("var"), kWorker);
}

TEST(PlaceTest, TheReportSaysWhy) {
  using Reason = PlacementReport::Reason;
  TestProgram p;
  Node* var = p.Add("var", "Var", {}, {.device = "/job:worker"});
  Node* x = p.Add("x", "Input", {}, {.device = kPs});
  Node* update = p.Add("update", "Update", {{var, 0}, {x, 0}});
  p.Add("y", "Heavy", {{x, 0}}, {.device = "/job:worker", .after = {update}});
  ASSERT_TRUE(p.Compile({}, {}, {"y"}).ok());
  const PlacementReport& report = p.report.placement;
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
  EXPECT_THAT(ToString(p.report), HasSubstr("var and 1 more @ /job:worker/replica:0/task:0/"
                                            "device:CPU:0: holds state"));
}

}  // namespace
}  // namespace penstock
