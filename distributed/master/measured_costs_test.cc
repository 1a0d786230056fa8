// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/measured_costs.h"

#include "core/graph/testing/test_ops.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kCpu[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:a/replica:0/task:0/device:GPU:0";

DeviceInfo Device(const char* name) { return {.name = *DeviceName::Parse(name)}; }

NodeStats Took(const char* node, int64_t nanos, int64_t bytes) {
  return {.node = node,
          .start_ns = 100,
          .end_ns = 100 + nanos,
          .outputs = {{.index = 0, .dtype = DType::kFloat, .bytes = bytes}}};
}

TEST(MeasuredCostsTest, TimesOfStatelessNodesOnCpus) {
  Graph graph(TestOps());
  const auto add = [&](const char* name, const char* op, Attrs attrs) {
    const auto node = graph.AddNode({.name = name, .op = op, .attrs = std::move(attrs)});
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  };
  const Node* x = add("x", "Placeholder", {{"dtype", DType::kFloat}});
  const Node* variable =
      add("v", "VariableV2", {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});

  MeasuredCosts costs;
  EXPECT_EQ(costs.Get(), nullptr);
  constexpr int64_t kLong = 5'000'000'000;
  costs.Record(graph, {{kCpu, {Took("x", kLong, 40), Took("v", kLong, 4), Took("_recv_x", 7, 8)}},
                       {kGpu, {Took("x", 1, 40)}}});
  const auto table = costs.Get();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->NodeNanos(*x, Device(kCpu)), kLong);
  EXPECT_LT(table->NodeNanos(*x, Device(kGpu)), kLong) << "not the time of the launch: an estimate";
  EXPECT_GT(table->NodeNanos(*x, Device(kGpu)), 1);
  EXPECT_LT(table->NodeNanos(*variable, Device(kCpu)), kLong) << "it may have waited";
  EXPECT_EQ(table->OutputBytes(*x, 0), 40);
  EXPECT_EQ(table->OutputBytes(*variable, 0), 4);

  costs.Record(graph, {{kCpu, {Took("x", 1000, 80)}}});
  EXPECT_EQ(table->OutputBytes(*x, 0), 40) << "a snapshot";
  EXPECT_EQ(costs.Get()->OutputBytes(*x, 0), 80);
}

}  // namespace
}  // namespace penstock
