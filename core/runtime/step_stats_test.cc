// SPDX-License-Identifier: Apache-2.0
//
// Tests the statistics that a traced step records of its nodes.
#include "core/runtime/step_stats.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/join.h"
#include "core/runtime/executor.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

Tensor Scalar64(int64_t value) { return Tensor::Scalar(value); }

// The parameter: whether the step runs by RunAsync.
class StepStatsTest : public testing::TestWithParam<bool> {
 protected:
  Status Run(Graph graph, TestStep& step) {
    const auto executor = task_.Make(std::move(graph));
    if (!GetParam()) return executor->Run(step.Args());
    Wait wait(Scheduler::Real(), "the end of a step");
    executor->RunAsync(step.Args(), wait.done());
    return wait.Get();
  }
  TestTask task_;
};
INSTANTIATE_TEST_SUITE_P(How, StepStatsTest, testing::Bool());

TEST_P(StepStatsTest, SayWhatMemoryWasTaken) {
  TestGraph g;
  Node* const x = g.Feed(0);
  Node* const made = g.AddSum("TestSum", {x});
  Node* const in_place = g.AddSum("TestSum", {made});
  Node* const later = g.AddSum("TestAsync", {in_place});
  g.Fetch(later, 0);
  const std::vector<std::string> names = {x->name(), made->name(), in_place->name(), later->name()};
  const Tensor feed = Scalar64(1);
  StepStatsCollector stats;
  TestStep step(1, {feed});
  step.stats = &stats;
  ASSERT_TRUE(Run(g.Take(), step).ok());
  std::map<std::string, NodeStats> nodes;
  for (const DeviceStats& device : stats.Take()) {
    for (const NodeStats& node : device.nodes) nodes[node.node] = node;
  }
  EXPECT_TRUE(nodes[names[0]].memory.empty());
  EXPECT_TRUE(nodes[names[2]].memory.empty());
  for (const std::string& name : {names[1], names[3]}) {
    const NodeStats& node = nodes[name];
    ASSERT_EQ(node.memory.size(), 1u) << name;
    EXPECT_EQ(node.memory[0].allocator, CpuAllocator().name());
    EXPECT_GE(node.memory[0].total_bytes, 8);
    EXPECT_EQ(node.memory[0].peak_bytes, node.memory[0].total_bytes);
    EXPECT_EQ(node.memory[0].live_bytes, node.memory[0].total_bytes);
    ASSERT_EQ(node.outputs.size(), 1u);
    EXPECT_EQ(node.outputs[0].bytes, 8);
    EXPECT_EQ(node.outputs[0].allocator, CpuAllocator().name());
  }
  EXPECT_EQ(nodes[names[1]].outputs[0].address, nodes[names[2]].outputs[0].address);
}

TEST(WaitsForOthersTest, TheTraitsOfOpsTell) {
  const Registry registry({{.name = "Take", .may_wait = true},
                           {.name = "Receive", .end = EndOp::kRecv},
                           {.name = "QueueLikeSum"}},
                          {});
  EXPECT_TRUE(WaitsForOthers({.op = "Take"}, registry));
  EXPECT_TRUE(WaitsForOthers({.op = "Receive"}, registry));
  EXPECT_TRUE(WaitsForOthers({.node = kTransferStats}, registry));
  EXPECT_FALSE(WaitsForOthers({.op = "QueueLikeSum"}, registry));
  EXPECT_FALSE(WaitsForOthers({.op = "Unknown"}, registry));
}

TEST_P(StepStatsTest, SayWhatHappened) {
  TestGraph g;
  Node* const x = g.Feed(0);
  Node* const slow = g.AddSum("TestSpin", {x}, {{"micros", 2000}});
  Node* const alias = g.Add("TestAlias", {slow}, {}, {}, "out/alias");
  Node* const end = g.AddSum("TestAsync", {alias, x});
  g.Fetch(end, 0);
  g.Fetch(alias, 1, 1);
  StepStatsCollector stats;
  TestStep step(2, {Scalar64(1)});
  step.stats = &stats;
  const int64_t before = Env::Real().WallMicros() * 1000;
  ASSERT_TRUE(Run(g.Take(), step).ok());
  const int64_t after = (Env::Real().WallMicros() + 1) * 1000;
  const std::vector<DeviceStats> devices = stats.Take();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].device, task_.device->name());
  std::map<std::string, NodeStats> nodes;
  for (const NodeStats& node : devices[0].nodes) nodes[node.node] = node;
  EXPECT_EQ(nodes.size(), 6u);
  for (const auto& [name, node] : nodes) {
    EXPECT_LE(before - 1'000'000, node.scheduled_ns) << name;
    EXPECT_LE(node.scheduled_ns, node.start_ns) << name;
    EXPECT_LE(node.start_ns, node.end_ns) << name;
    EXPECT_LE(node.end_ns, after + 1'000'000) << name;
    EXPECT_GT(node.thread, 0u) << name;
  }
  EXPECT_GE(nodes["n1"].end_ns - nodes["n1"].start_ns, 2'000'000);
  EXPECT_GE(nodes["out/alias"].scheduled_ns, nodes["n1"].start_ns + 2'000'000);
  EXPECT_EQ(nodes["out/alias"].op, "TestAlias");
  EXPECT_EQ(nodes["n3"].op, "TestAsync");
  EXPECT_EQ(nodes["n3"].inputs,
            (std::vector<NodeStats::Input>{{.node = "out/alias"}, {.node = "n0"}}));
  ASSERT_EQ(nodes["out/alias"].outputs.size(), 2u);
  EXPECT_EQ(nodes["out/alias"].outputs[1].index, 1);
  EXPECT_EQ(nodes["out/alias"].outputs[1].dtype, DType::kBool);
  EXPECT_EQ(nodes["out/alias"].outputs[1].bytes, 1);
  EXPECT_TRUE(stats.Take().empty());
}

}  // namespace
}  // namespace penstock
