// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/measured_costs.h"

#include "core/graph/testing/test_ops.h"
#include "core/op/task_name.h"
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

// The client's graph does not have the node, but the next compilation of the step will.
TEST(MeasuredCostsTest, FusedNodesAreTimed) {
  MeasuredCosts costs;
  NodeStats fused = Took("y/fused", 700, 40), added = Took("_late_y", 700, 40);
  fused.op = "_Fused[x y]";
  added.op = "Identity";
  costs.Record(Graph(TestOps()), {{kCpu, {fused, added}}});
  const auto records = costs.Get()->Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].node, "y/fused");
  ASSERT_EQ(records[0].times.size(), 1u);
  EXPECT_EQ(records[0].times[0].second, 700);
  EXPECT_EQ(records[0].output_bytes, std::vector<double>{40});
}

TEST(MeasuredCostsTest, TransfersTellOfLinks) {
  constexpr char kOther[] = "/job:b/replica:0/task:1/device:CPU:0";
  const auto transfer = [&](const std::string& edge, int64_t start, int64_t end) {
    return NodeStats{.node = kTransferStats,
                     .transfer = {{.edge = edge, .from = kCpu, .to = kOther}},
                     .start_ns = start,
                     .end_ns = end,
                     .outputs = {{.index = 0, .dtype = DType::kFloat, .bytes = 40}}};
  };
  MeasuredCosts costs;
  // x ends at 150. The consumer has waited for it since 10: the transfer took 50, not 190.
  costs.Record(Graph(TestOps()),
               {{kCpu, {Took("x", 50, 40)}},
                {kOther,
                 {transfer("edge_3_x:0", 10, 200), transfer("edge_3_^x", 10, 9'000),
                  transfer("edge_4_unknown:0", 10, 9'000)}}});
  const auto table = costs.Get();
  ASSERT_EQ(table->links().size(), 1u);
  EXPECT_EQ(table->links()[0].transfers, 1);
  EXPECT_EQ(table->LinkBetween(Device(kCpu), Device(kOther)).latency_ns, 50);
}

// A tensor of 1 MB was computed at 150 and arrived at 10150, but the consumer began to wait for it
// only at 10050.
TEST(MeasuredCostsTest, TransfersThatBeganBeforeTheWaitAreNotTimed) {
  constexpr char kOther[] = "/job:b/replica:0/task:1/device:CPU:0";
  constexpr int64_t kBytes = 1'000'000;
  const auto transfer = [&](int64_t start) {
    return NodeStats{.node = kTransferStats,
                     .transfer = {{.edge = "edge_3_x:0", .from = kCpu, .to = kOther}},
                     .start_ns = start,
                     .end_ns = 10'150,
                     .outputs = {{.index = 0, .dtype = DType::kFloat, .bytes = kBytes}}};
  };
  MeasuredCosts costs;
  const Graph graph(TestOps());
  costs.Record(graph, {{kCpu, {Took("x", 50, kBytes)}}, {kOther, {transfer(10'050)}}});
  EXPECT_TRUE(costs.Get()->links().empty());
  costs.Record(graph, {{kCpu, {Took("x", 50, kBytes)}}, {kOther, {transfer(100)}}});
  costs.Record(graph, {{kCpu, {Took("x", 50, kBytes)}}, {kOther, {transfer(10'050)}}});
  ASSERT_EQ(costs.Get()->links().size(), 1u);
  EXPECT_EQ(costs.Get()->links()[0].bytes_per_ns, 100);
}

TEST(MeasuredCostsTest, ClocksOfTwoHostsAreCompared) {
  constexpr char kOther[] = "/job:b/replica:0/task:1/device:CPU:0";
  constexpr int64_t kAhead = 1'000'000;
  const NodeStats transfer = {.node = kTransferStats,
                              .transfer = {{.edge = "edge_3_x:0", .from = kCpu, .to = kOther}},
                              .start_ns = 10 + kAhead,
                              .end_ns = 200 + kAhead,
                              .outputs = {{.index = 0, .dtype = DType::kFloat, .bytes = 40}}};
  const std::vector<DeviceStats> stats = {{kCpu, {Took("x", 50, 40)}}, {kOther, {transfer}}};
  MeasuredCosts costs;
  costs.Record(Graph(TestOps()), stats, {{TaskName::OfDevice(kOther)->ToString(), kAhead}});
  EXPECT_EQ(costs.Get()->LinkBetween(Device(kCpu), Device(kOther)).latency_ns, 50);
}

TEST(MeasuredCostsTest, StepsTellHowSlowADeviceIs) {
  Graph graph(TestOps());
  ASSERT_TRUE(
      graph.AddNode({.name = "x", .op = "Placeholder", .attrs = {{"dtype", DType::kFloat}}}).ok());
  MeasuredCosts costs;
  for (int step = 0; step < 8; ++step) costs.Record(graph, {{kCpu, {Took("x", 1000, 40)}}});
  EXPECT_EQ(costs.Get()->Slowness(Device(kCpu).name), 1);
  for (int step = 0; step < 12; ++step) {
    costs.Record(graph, {{kCpu, {Took("x", step % 2 == 0 ? 4000 : 1000, 40)}}});
  }
  EXPECT_GT(costs.Get()->Slowness(Device(kCpu).name), 1.25);
}

}  // namespace
}  // namespace penstock
