// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/compiler/pass/cost_table.h"
#include "core/compiler/placement/placed_problem.h"
#include "core/compiler/testing/test_program.h"
#include "core/graph/graph.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr double kMega = 1e6;

// A chain of layers on kWorker, each of which reads a weight of `bytes` from kPs.
struct Layers : TestProgram {
  explicit Layers(int count, double layer_ns = 10 * kMega, double bytes = 4 * kMega) {
    Node* last = Add("x", "Input", {}, {.device = kWorker});
    for (int i = 0; i < count; ++i) {
      const std::string layer = StrCat("layer", i), weight = StrCat("weight", i);
      Node* const variable = Add(StrCat("variable", i), "Var", {}, {.device = kPs});
      Node* const p = Add(weight, "Identity", {{variable, 0}}, {.device = kPs});
      last = Add(layer, "Sum2", {{last, 0}, {p, 0}}, {.device = kWorker});
      costs.RecordNode(layer, *DeviceName::Parse(kWorker), layer_ns);
      for (const Node* node : {variable, p}) {
        costs.RecordNode(node->name(), *DeviceName::Parse(kPs), 1000);
      }
      costs.RecordOutput(weight, 0, bytes);
    }
    options.costs = &costs;
  }

  struct Predicted {
    double step_ns = 0, worker_bytes = 0;
  };
  Predicted PredictAfter(const std::string& pass) {
    const Graph& placed = After(pass);
    CostTable known = costs;
    known.Estimate(placed, *InferShapes(placed));
    for (const Node* node : placed.nodes()) {
      if (node->name().starts_with("_late_")) {
        known.RecordOutput(node->name(), 0, known.OutputBytes(*node->input(0).node, 0));
      }
    }
    const auto problem = DescribePlaced(placed, devices, known, options.client_device);
    EXPECT_TRUE(problem.ok()) << problem.status();
    const PredictedStep step =
        PredictStep(problem->problem, problem->device, UpwardRanks(problem->problem));
    return {step.end_ns, PeakBytes(*problem, step)[1]};
  }

  int CountLate() {
    int count = 0;
    for (const Node* node : After("schedule").nodes()) {
      count += node->name().starts_with("_late_") ? 1 : 0;
    }
    return count;
  }

  CostTable costs;
};

TEST(ScheduleTransfersTest, WeightsArriveShortlyBeforeTheirLayers) {
  Layers p(12);
  ASSERT_TRUE(p.Compile({}, {"layer11:0"}).ok());
  const Layers::Predicted early = p.PredictAfter("compress"), late = p.PredictAfter("schedule");
  EXPECT_GT(p.CountLate(), 8);
  EXPECT_GT(early.worker_bytes, 8 * 4 * kMega) << "most weights wait for their layers";
  EXPECT_LT(late.worker_bytes, 5 * 4 * kMega);
  EXPECT_LE(late.step_ns, 1.01 * early.step_ns);
}

// A training step, with a forward and a backward pass, both of which read all weights.
TEST(ScheduleTransfersTest, ATrainingStepNeedsFirstWeightsTwice) {
  Layers p(12);
  Node* gradient = p.graph.FindNode("layer11");
  for (int i = 11; i >= 0; --i) {
    const std::string name = StrCat("back", i);
    Node* const weight = p.graph.FindNode(StrCat("weight", i));
    gradient = p.Add(name, "Sum2", {{gradient, 0}, {weight, 0}}, {.device = kWorker});
    p.costs.RecordNode(name, *DeviceName::Parse(kWorker), 20 * kMega);
  }
  ASSERT_TRUE(p.Compile({}, {"back0:0"}).ok());
  // When the forward pass ends, all weights are in memory. No schedule can lower that peak, so
  // nothing is delayed.
  EXPECT_EQ(p.CountLate(), 0);
}

TEST(ScheduleTransfersTest, LeavesWhatIsNeededAtOnceOrIsSmall) {
  Layers busy(12, /*layer_ns=*/1000);  // the link is the bottleneck: every transfer is late already
  ASSERT_TRUE(busy.Compile({}, {"layer11:0"}).ok());
  EXPECT_EQ(busy.CountLate(), 0);
  Layers small(12, 10 * kMega, /*bytes=*/1000);
  ASSERT_TRUE(small.Compile({}, {"layer11:0"}).ok());
  EXPECT_EQ(small.CountLate(), 0);
}

TEST(ScheduleTransfersTest, CanBeLeftOut) {
  Layers p(12);
  p.options.disabled_passes = {"schedule"};
  ASSERT_TRUE(p.Compile({}, {"layer11:0"}).ok());
  EXPECT_EQ(p.after.count("schedule"), 0u);
}

// Layers that come after a node which may wait for another part of the step must not delay a
// transfer, because the other part may need that transfer.
TEST(ScheduleTransfersTest, NodesThatMayWaitDelayNothing) {
  Layers p(12);
  Node* const waits = p.Add("waits", "Use", {{p.graph.FindNode("x"), 0}}, {.device = kWorker});
  ASSERT_TRUE(p.graph.SetInput(p.graph.FindNode("layer0"), 0, {waits, 0}).ok());
  ASSERT_TRUE(p.Compile({}, {"layer11:0"}).ok());
  EXPECT_EQ(p.CountLate(), 0);
}

TEST(ScheduleTransfersTest, PartialRunsAreLeft) {
  Layers p(12);
  p.options.partial_run = true;
  ASSERT_TRUE(p.Compile({}, {"layer11:0"}).ok());
  EXPECT_EQ(p.CountLate(), 0);
}

// The graph reads the weights last layer first; the partition sends them first layer first.
TEST(ScheduleTransfersTest, VariablesLeaveInTheOrderOfNeed) {
  TestProgram p;
  std::vector<Endpoint> weights;
  for (int i = 0; i < 4; ++i) {
    Node* const variable = p.Add(StrCat("variable", i), "Var", {}, {.device = kPs});
    weights.push_back(
        {p.Add(StrCat("weight", i), "Identity", {{variable, 0}}, {.device = kPs}), 0});
  }
  Node* last = p.Add("x", "Input", {}, {.device = kWorker});
  for (int i = 3; i >= 0; --i) {
    last = p.Add(StrCat("layer", i), "Sum2", {weights[i], {last, 0}}, {.device = kWorker});
  }
  const auto partitions = p.Compile({}, {"layer0:0"});
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const auto order_of = [](const Partition& ps) {
    std::vector<std::string> names;
    for (const Node* node : ps.graph.nodes()) {
      if (node->op_name() == "Var") names.push_back(node->name());
    }
    return names;
  };
  ASSERT_EQ((*partitions)[0].device, kPs);
  EXPECT_EQ(order_of((*partitions)[0]),
            (std::vector<std::string>{"variable3", "variable2", "variable1", "variable0"}));
  p.options.disabled_passes = {"schedule"};
  const auto unordered = p.Compile({}, {"layer0:0"});
  ASSERT_TRUE(unordered.ok()) << unordered.status();
  EXPECT_EQ(order_of((*unordered)[0]),
            (std::vector<std::string>{"variable0", "variable1", "variable2", "variable3"}))
      << "prune visits first inputs first, and the last layer's weight is one";
}

}  // namespace
}  // namespace penstock
