// SPDX-License-Identifier: Apache-2.0
#include "distributed/session/cost_graph.h"

#include "core/graph/testing/test_ops.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kCpu[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kOther[] = "/job:b/replica:0/task:0/device:CPU:0";

// Returns partitions with x on kOther, and a placeholder and its Identity on kCpu.
std::vector<std::pair<std::string, Graph>> TwoPartitions() {
  std::vector<std::pair<std::string, Graph>> partitions;
  Graph other(TestOps()), graph(TestOps());
  const Attrs is_float = {{"dtype", DType::kFloat}};
  CHECK_OK(other.AddNode({.name = "x", .op = "Placeholder", .attrs = is_float}).status());
  const auto source = graph.AddNode({.name = "source", .op = "Placeholder", .attrs = is_float});
  CHECK_OK(source.status());
  const auto same = graph.AddNode({.name = "same",
                                   .op = "Identity",
                                   .inputs = {{*source, 0}},
                                   .attrs = {{"T", DType::kFloat}}});
  CHECK_OK(same.status());
  CHECK_OK(graph.AddNode({.name = "after", .op = "NoOp", .control_inputs = {*same}}).status());
  partitions.emplace_back(kOther, std::move(other));
  partitions.emplace_back(kCpu, std::move(graph));
  return partitions;
}

NodeStats Ran(const char* node, int64_t nanos, uint64_t address) {
  return {.node = node,
          .start_ns = 100,
          .end_ns = 100 + nanos,
          .outputs = {
              {.index = 0, .dtype = DType::kFloat, .shape = {2}, .bytes = 8, .address = address}}};
}

TEST(CostGraphTest, EdgesHaveTheIdsOfTheWholeList) {
  const auto nodes = CostGraphOf(TwoPartitions(), {});
  ASSERT_EQ(nodes.size(), 4u);
  for (size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i].id, static_cast<int>(i));
  EXPECT_EQ(nodes[0].name, "x");
  EXPECT_EQ(nodes[0].device, kOther);
  EXPECT_EQ(nodes[1].device, kCpu);
  ASSERT_EQ(nodes[2].inputs.size(), 1u);
  EXPECT_EQ(nodes[2].inputs[0].node, 1) << "the node 'source', behind the other partition's";
  EXPECT_EQ(nodes[3].control_inputs, std::vector<int>{2});
  EXPECT_EQ(nodes[2].outputs[0].dtype, DType::kFloat) << "also if it was not measured";
  EXPECT_EQ(nodes[2].nanos, 0);
}

TEST(CostGraphTest, TheLongestExecutionCounts) {
  const auto nodes = CostGraphOf(
      TwoPartitions(), {{kCpu, {Ran("source", 70, 1), Ran("source", 30, 1), Ran("gone", 5, 2)}},
                        {kOther, {Ran("source", 900, 1)}}});
  EXPECT_EQ(nodes[1].nanos, 70);
  EXPECT_EQ(nodes[1].outputs[0].bytes, 8);
  EXPECT_EQ(nodes[1].outputs[0].shape, PartialShape({2}));
  EXPECT_EQ(nodes[0].nanos, 0) << "'source' is not a node of that device";
}

TEST(CostGraphTest, AnOutputMayShareItsInputsBuffer) {
  auto nodes = CostGraphOf(TwoPartitions(), {{kCpu, {Ran("source", 1, 7), Ran("same", 1, 7)}}});
  EXPECT_EQ(nodes[1].outputs[0].alias_input, -1);
  EXPECT_EQ(nodes[2].outputs[0].alias_input, 0);
  nodes = CostGraphOf(TwoPartitions(), {{kCpu, {Ran("source", 1, 7), Ran("same", 1, 8)}}});
  EXPECT_EQ(nodes[2].outputs[0].alias_input, -1);
}

TEST(CostGraphTest, TensorsFromBeforeTheStepHaveNoBytes) {
  NodeStats constant = Ran("source", 1, 7);
  constant.persistent_bytes = 8;
  const auto nodes = CostGraphOf(TwoPartitions(), {{kCpu, {constant}}});
  EXPECT_EQ(nodes[1].outputs[0].bytes, 0);
  EXPECT_EQ(nodes[1].persistent_bytes, 8);
}

}  // namespace
}  // namespace penstock
