// SPDX-License-Identifier: Apache-2.0
//
// Tests the costs that sessions report: to their clients (RunMetadata::cost_graph) and to tools
// (GetCosts of the Insight service).
#include "core/graph/builder.h"
#include "distributed/rpc/ask_cluster.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr int kSide = 100;

// The parameter server multiplies the fed matrices; the worker fetches the product.
class CostsTest : public testing::Test {
 protected:
  CostsTest() {
    fed_ = CallIn(g_, "Placeholder", {},
                  {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, kSide})}});
    const auto ps = g_.DeviceScope("/job:ps");
    product_ = Call("MatMul", {fed_, fed_});
    CHECK_OK(g_.status());
  }
  std::unique_ptr<SessionInterface> Session(const SessionOptions& options) {
    auto session = cluster_.NewSession(options);
    CHECK_OK(session->Extend(g_.graph()));
    return session;
  }
  RunMetadata Run(SessionInterface& session, const RunOptions& options = {}) {
    RunMetadata metadata;
    std::vector<Tensor> out;
    const Tensor value(DType::kFloat, Shape({kSide, kSide}));
    CHECK_OK(session.Run(options, {{fed_.name(), value}}, {product_.name()}, {}, &out, &metadata));
    return metadata;
  }
  std::string product() const { return g_.NodeOf(product_)->name(); }

  TestCluster cluster_{{{"ps", 1}, {"worker", 1}}};
  GraphBuilder g_;
  Output fed_, product_;
};

TEST_F(CostsTest, ACostGraphIsFilledAsOftenAsTheOptionSays) {
  const auto session = Session({.build_cost_model = 2, .build_cost_model_after = 1});
  for (int run = 1; run <= 5; ++run) {
    const RunMetadata metadata = Run(*session);
    EXPECT_EQ(metadata.cost_graph.empty(), run != 3 && run != 5) << "in run " << run;
    EXPECT_TRUE(metadata.step_stats.empty()) << "nobody asked for a trace";
  }
}

TEST_F(CostsTest, ACostGraphHasTheCostsOfEachNode) {
  const auto session = Session({.build_cost_model = 1});
  const RunMetadata first = Run(*session);
  const RunMetadata metadata = Run(*session, {.trace = true, .partition_graphs = true});
  EXPECT_EQ(first.cost_graph.size(), metadata.cost_graph.size()) << "of the graphs that are kept";
  EXPECT_FALSE(metadata.step_stats.empty());
  size_t nodes = 0;
  for (const auto& [device, graph] : metadata.partition_graphs) nodes += graph.num_nodes();
  ASSERT_EQ(metadata.cost_graph.size(), nodes);
  int found = 0, sends = 0;
  for (const CostNode& node : metadata.cost_graph) {
    sends += node.is_send ? 1 : 0;
    if (node.name != product()) continue;
    ++found;
    EXPECT_THAT(node.device, HasSubstr("/job:ps/"));
    EXPECT_GT(node.nanos, 0);
    ASSERT_EQ(node.outputs.size(), 1u);
    EXPECT_EQ(node.outputs[0].bytes, kSide * kSide * 4);
    EXPECT_EQ(node.outputs[0].shape, PartialShape({kSide, kSide}));
    ASSERT_EQ(node.inputs.size(), 2u);
    EXPECT_EQ(metadata.cost_graph[node.inputs[0].node].device, node.device);
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(sends, 2) << "of what is fed, and of the product";
}

TEST_F(CostsTest, ATaskReportsMeasuredAndPredictedCosts) {
  const auto session = Session({});
  for (int run = 0; run < 12; ++run) Run(*session, {.trace = true});
  const auto report = AskCosts(cluster_.target(), 5);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->session_size(), 1);
  const wire::SessionCosts& costs = report->session(0);
  ASSERT_EQ(costs.step_size(), 1);
  const wire::StepCosts& step = costs.step(0);
  EXPECT_EQ(step.fetch(0), product_.name());
  EXPECT_EQ(step.executions(), 12);
  EXPECT_GT(step.median_ns(), 0);
  EXPECT_GT(step.predicted_ns(), 0);
  EXPECT_FALSE(step.has_error());
  bool measured = false;
  for (const wire::NodeCost& node : step.node()) {
    if (node.node() != product()) continue;
    measured = node.measured();
    EXPECT_EQ(node.op(), "MatMul");
    EXPECT_EQ(node.bytes(), kSide * kSide * 4);
    EXPECT_EQ(node.flops(), 2.0 * kSide * kSide * kSide) << "by the shape that was fed";
  }
  EXPECT_TRUE(measured);
  ASSERT_GT(costs.measured_size(), 0);
  // The parameter server's task is the master of no session.
  const auto none = AskCosts(cluster_.target("ps"), 5);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->session_size(), 0);
}

// The pass "fuse" makes one node of two, whose time is measured under its own name. The prediction
// has this node, too.
TEST_F(CostsTest, FusedNodesAreMeasuredAndPredicted) {
  {
    const auto ps = g_.DeviceScope("/job:ps");
    product_ = Call("Tanh", {Call("Neg", {product_})});
  }
  const auto session = Session({});
  for (int run = 0; run < 3; ++run) Run(*session, {.trace = true});
  const auto report = AskCosts(cluster_.target(), 5);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->session_size(), 1);
  ASSERT_EQ(report->session(0).step_size(), 1);
  int fused = 0;
  for (const wire::NodeCost& node : report->session(0).step(0).node()) {
    EXPECT_NE(node.op(), "Tanh");
    if (node.op() != "_Fused") continue;
    ++fused;
    EXPECT_TRUE(node.measured());
    EXPECT_EQ(node.flops(), 2 * kSide * kSide);
  }
  EXPECT_EQ(fused, 1);
}

}  // namespace
}  // namespace penstock
