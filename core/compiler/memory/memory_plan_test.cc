// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/memory_plan.h"

#include <algorithm>

#include "core/compiler/memory/execution_order.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int kLayers = 8;
constexpr double kSmall = 1'000, kLarge = 20'000;

// A training step: each layer computes a small product, and from it a large tensor that the
// backward pass needs.
struct Layers : TestProgram {
  explicit Layers(bool cheap) {
    Node* x = Product("x", Place(Add("input", "Noise")), kSmall);
    std::vector<Node*> large;
    for (int i = 0; i < kLayers; ++i) {
      const std::string name = StrCat("large", i);
      large.push_back(Place(cheap ? Add(name, "Heavy", {{x, 0}}) : Add(name, "Use", {{x, 0}})));
      costs.RecordOutput(name, 0, kLarge);
      x = Product(StrCat("x", i), large.back(), kSmall);
    }
    for (int i = kLayers - 1; i >= 0; --i) {
      const std::string name = StrCat("back", i);
      x = Place(Add(name, "Product", {{x, 0}, {large[i], 0}}));
      costs.RecordOutput(name, 0, kSmall);
    }
  }
  Node* Place(Node* node) {
    graph.set_assigned_device(node, kWorker);
    return node;
  }
  Node* Product(const std::string& name, Node* of, double bytes) {
    costs.RecordOutput(name, 0, bytes);
    return Place(Add(name, "Product", {{of, 0}, {of, 0}}));
  }
  std::vector<Node*> Order() const { return *ExecutorOrder(graph, costs, "/job:worker"); }

  CostTable costs;
};

void ExpectOrdered(const MemoryPlan& plan, const Graph& graph) {
  EXPECT_TRUE(graph.Validate().ok()) << graph.Validate();
  ASSERT_EQ(plan.order().size(), static_cast<size_t>(graph.num_nodes()));
  std::vector<int> at(graph.max_id(), -1);
  for (size_t i = 0; i < plan.order().size(); ++i) at[plan.order()[i]->id()] = static_cast<int>(i);
  for (const Node* node : plan.order()) {
    for (const Endpoint& in : node->inputs()) EXPECT_LT(at[in.node->id()], at[node->id()]);
    for (const Node* in : node->control_inputs()) {
      EXPECT_LT(at[in->id()], at[node->id()]) << in->name() << " before " << node->name();
    }
  }
}

TEST(MemoryPlanTest, CheapNodesRunAgain) {
  Layers p(/*cheap=*/true);
  const double limit = 3 * kLarge;
  MemoryPlan plan(&p.graph, p.costs, p.Order(), limit);
  EXPECT_GT(plan.profile().devices[0].peak_bytes, kLayers * kLarge);
  ASSERT_TRUE(plan.LowerBy(MemoryPlan::Method::kRecompute).ok());
  EXPECT_TRUE(plan.Fits());
  EXPECT_GE(plan.num_recomputed(), kLayers - 3);
  EXPECT_EQ(plan.num_swapped(), 0);
  plan.KeepOrder();
  ExpectOrdered(plan, p.graph);
  // The copy runs only when its memory is free.
  const Node* const again = p.graph.FindNode("_again_large0");
  ASSERT_NE(again, nullptr);
  EXPECT_FALSE(again->control_inputs().empty());
  EXPECT_EQ(p.graph.FindNode("back0")->input(1).node, again);
}

// A worker that sends many tensors, and a task that reads them one by one.
struct Sender : TestProgram {
  Sender() {
    for (int i = 0; i < kLayers; ++i) {
      Node* const made = Run(StrCat("made", i), "Noise", {}, kLarge, kWorker);
      Run(StrCat("read", i), "Use", {{made, 0}}, kSmall, kPs);
    }
  }
  Node* Run(const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
            double bytes, const std::string& device) {
    Node* const node = Add(name, op, std::move(inputs));
    graph.set_assigned_device(node, device);
    costs.RecordOutput(name, 0, bytes);
    order.push_back(node);
    return node;
  }

  CostTable costs;
  std::vector<Node*> order;
};

// The worker makes a tensor only after the other task has read an earlier one.
TEST(MemoryPlanTest, SentTensorsDoNotPileUp) {
  Sender p;
  const double limit = 2.5 * kLarge;
  MemoryPlan plan(&p.graph, p.costs, p.order, limit);
  EXPECT_TRUE(plan.Fits());
  EXPECT_FALSE(plan.AlwaysFits());
  plan.KeepOrder();
  EXPECT_TRUE(plan.AlwaysFits());
  ExpectOrdered(plan, p.graph);
  const auto& before = p.graph.FindNode("made5")->control_inputs();
  EXPECT_EQ(std::ranges::count(before, p.graph.FindNode("read4")), 1);
}

// If all fit, no task waits for another one.
TEST(MemoryPlanTest, TasksDoNotWaitWithoutNeed) {
  Sender p;
  MemoryPlan plan(&p.graph, p.costs, p.order, (kLayers + 1) * kLarge);
  if (plan.IsNearLimit()) plan.KeepOrder();
  EXPECT_TRUE(plan.AlwaysFits());
  for (const Node* node : plan.order()) {
    for (const Node* before : node->control_inputs()) {
      EXPECT_EQ(before->assigned_device(), node->assigned_device());
    }
  }
}

TEST(MemoryPlanTest, OthersWaitInAFile) {
  Layers p(/*cheap=*/false);
  const double limit = 3 * kLarge;
  MemoryPlan plan(&p.graph, p.costs, p.Order(), limit);
  ASSERT_TRUE(plan.LowerBy(MemoryPlan::Method::kRecompute).ok());
  EXPECT_FALSE(plan.Fits()) << "a stateful node never runs twice";
  EXPECT_EQ(plan.num_recomputed(), 0);
  ASSERT_TRUE(plan.LowerBy(MemoryPlan::Method::kSwap).ok());
  EXPECT_TRUE(plan.Fits());
  EXPECT_GE(plan.num_swapped(), kLayers - 3);
  plan.KeepOrder();
  ExpectOrdered(plan, p.graph);
  EXPECT_EQ(p.graph.FindNode("back0")->input(1).node->op_name(), "_SwapIn");
  for (const Node* node : p.graph.nodes()) {
    EXPECT_FALSE(node->op_name() == "_SwapIn" && node->control_inputs().empty());
    EXPECT_FALSE(node->op_name() == "_SwapOut" && node->control_outputs().empty());
  }
}

TEST(MemoryPlanTest, AGraphThatNothingHelpsStaysAsItWas) {
  Layers p(/*cheap=*/true);
  const int nodes = p.graph.num_nodes();
  MemoryPlan plan(&p.graph, p.costs, p.Order(), kLarge);
  ASSERT_TRUE(plan.LowerBy(MemoryPlan::Method::kRecompute).ok());
  EXPECT_FALSE(plan.Fits()) << "one node alone needs more";
  ExpectOrdered(plan, p.graph);
  EXPECT_EQ(p.graph.num_nodes(), nodes + plan.num_recomputed());
}

// The known order computes all gradients first. A better order uses each gradient at once.
TEST(MemoryPlanTest, AnOrderThatFreesEarlyTakesLess) {
  TestProgram p;
  CostTable costs;
  const auto place = [&](Node* node, double bytes) {
    p.graph.set_assigned_device(node, kWorker);
    if (node->num_outputs() > 0) costs.RecordOutput(node->name(), 0, bytes);
    return node;
  };
  std::vector<Node*> order;
  std::vector<Endpoint> made;
  for (int i = 0; i < 5; ++i) {
    made.push_back({place(p.Add(StrCat("made", i), "Noise"), 1000), 0});
    order.push_back(made.back().node);
  }
  for (int i = 0; i < 5; ++i) {
    order.push_back(place(p.Add(StrCat("used", i), "Use", {made[i]}), 10));
  }
  MemoryPlan plan(&p.graph, costs, order, 2000);
  EXPECT_EQ(plan.profile().devices[0].peak_bytes, 5010);
  plan.LowerByOrder();
  EXPECT_EQ(plan.profile().devices[0].peak_bytes, 1010);
  plan.KeepOrder();
  ExpectOrdered(plan, p.graph);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(p.graph.FindNode(StrCat("made", i))->control_inputs().size(), 1u);
  }
}

// Adds the gradients of one weight two at a time, so that not all are in memory at once.
TEST(MemoryPlanTest, LargeSumsBecomeChains) {
  TestProgram p;
  CostTable costs;
  const auto place = [&](Node* node, double bytes) {
    p.graph.set_assigned_device(node, kWorker);
    costs.RecordOutput(node->name(), 0, bytes);
    return node;
  };
  std::vector<Endpoint> made;
  for (int i = 0; i < 6; ++i) made.push_back({place(p.Add(StrCat("made", i), "Noise"), 1000), 0});
  Node* const after = place(p.Add("after", "Noise"), 1);
  Node* const sum = place(p.Add("sum", "AddN", made, {.attrs = {{"N", int64_t{6}}}}), 1000);
  place(p.Add("small", "AddN", {made[0], made[1]}, {.attrs = {{"N", int64_t{2}}}}), 1000);
  place(p.Add("used", "Use", {{sum, 0}}), 10);
  p.graph.AddControlEdge(sum, after);
  MemoryPlan plan(&p.graph, costs, *ExecutorOrder(p.graph, costs, "/job:worker"), 4000);
  EXPECT_GE(plan.profile().devices[0].peak_bytes, 6000);
  ASSERT_TRUE(plan.SplitSums().ok());
  plan.LowerByOrder();
  EXPECT_TRUE(plan.Fits()) << plan.profile().devices[0].peak_bytes;
  plan.KeepOrder();
  ExpectOrdered(plan, p.graph);
  EXPECT_EQ(p.graph.FindNode("sum"), nullptr);
  EXPECT_NE(p.graph.FindNode("small"), nullptr) << "it has two inputs already";
  // ((((0 + 1) + 2) + 3) + 4) + 5: the order in which the kernel AddN adds its inputs.
  const Node* link = p.graph.FindNode("used")->input(0).node;
  EXPECT_TRUE(std::ranges::count(after->control_inputs(), link)) << "it waited for the sum";
  for (int i = 5; i > 0; --i) {
    ASSERT_EQ(link->num_inputs(), 2);
    EXPECT_EQ(link->input(1), made[i]);
    if (i > 1) link = link->input(0).node;
  }
  EXPECT_EQ(link->input(0), made[0]);
}

// The worker, which is near its limit, receives tensors as soon as the other task computes them:
// the plan does not delay the other task.
TEST(MemoryPlanTest, OtherTasksRunWhenTheyCan) {
  TestProgram p;
  CostTable costs;
  const auto place = [&](Node* node, const char* device, double bytes) {
    p.graph.set_assigned_device(node, device);
    costs.RecordOutput(node->name(), 0, bytes);
    return node;
  };
  std::vector<Node*> order;
  for (int i = 0; i < 4; ++i) {
    order.push_back(place(p.Add(StrCat("sent", i), "Noise"), kPs, 1000));
  }
  Node* last = place(p.Add("first", "Noise"), kWorker, 100);
  order.push_back(last);
  for (int i = 0; i < 4; ++i) {
    last = place(p.Add(StrCat("layer", i), "Product", {{last, 0}, {order[i], 0}}), kWorker, 1500);
    order.push_back(last);
  }
  MemoryPlan plan(&p.graph, costs, order, 6200);
  const auto peak = [&] { return plan.profile().devices[1].peak_bytes; };
  ASSERT_EQ(plan.model().devices()[1], kWorker);
  EXPECT_EQ(peak(), 6000) << "three that were sent, and two products";
  plan.LowerByOrder();
  EXPECT_EQ(peak(), 6000);
}

TEST(MemoryPlanTest, AStepDoesNotWaitForItself) {
  Layers p(/*cheap=*/false);
  // The step takes a staged value at its beginning, and stages another value at its end.
  Node* const back = p.graph.FindNode("back0");
  Node* const stage = p.Place(p.Add("stage", "Stage", {{back, 0}}));
  Node* const unstage = p.Place(p.Add("unstage", "Unstage"));
  Node* const used = p.Place(p.Add("used", "Use", {{unstage, 0}}));
  p.costs.RecordOutput("unstage", 0, kLarge);
  p.costs.RecordOutput("used", 0, kLarge);
  std::vector<Node*> order = {unstage, used};
  for (Node* node : p.Order()) {
    if (node != unstage && node != used) order.push_back(node);
  }
  MemoryPlan plan(&p.graph, p.costs, order, 8.5 * kLarge);
  ASSERT_TRUE(plan.IsNearLimit() && plan.Fits());
  EXPECT_EQ(plan.order().back(), stage);
  plan.KeepOrder();
  ExpectOrdered(plan, p.graph);
  for (const Node* node : plan.order()) {
    if (node == unstage || node == used) continue;
    for (const Node* before : node->control_inputs()) {
      EXPECT_TRUE(before != unstage && before != used) << node->name() << " leads to the Stage";
    }
  }
}

TEST(MemoryPlanTest, NodesThatMayBeDeadAreLeftAlone) {
  Layers p(/*cheap=*/true);
  Node* const pred = p.Place(p.Add("pred", "Noise"));
  Node* const large = p.graph.FindNode("large0");
  Node* const branch = p.Place(p.Add("switch", "Switch", {{large, 0}, {pred, 0}}));
  Node* const taken = p.Place(p.Add("taken", "Heavy", {{branch, 1}}));
  p.costs.RecordOutput("taken", 0, kLarge);
  MemoryPlan plan(&p.graph, p.costs, p.Order(), 3 * kLarge);
  ASSERT_TRUE(plan.LowerBy(MemoryPlan::Method::kRecompute).ok());
  plan.KeepOrder();
  ExpectOrdered(plan, p.graph);
  EXPECT_TRUE(branch->control_inputs().empty());
  EXPECT_TRUE(taken->control_inputs().empty() && taken->control_outputs().empty());
}

// The parameter server might take the large tensors late, so the plan chains all nodes.
TEST(MemoryPlanTest, ConstantsAreNotChained) {
  TestProgram p;
  CostTable costs;
  std::vector<Node*> order;
  const auto place = [&](Node* node, const char* device, double bytes) {
    p.graph.set_assigned_device(node, device);
    costs.RecordOutput(node->name(), 0, bytes);
    order.push_back(node);
    return node;
  };
  for (int i = 0; i < 4; ++i) {
    Node* const made = place(p.Add(StrCat("made", i), "Noise"), kWorker, 1000);
    place(p.Add(StrCat("read", i), "Use", {{made, 0}}), kPs, 1);
    Node* const constant = place(p.Constant(StrCat("constant", i), {1, 2}), kWorker, 8);
    place(p.Add(StrCat("there", i), "Use", {{constant, 0}}), kPs, 1);
    place(p.Add(StrCat("small", i), "Noise"), kWorker, 1);
  }
  MemoryPlan plan(&p.graph, costs, order, 2000);
  ASSERT_TRUE(plan.Fits());
  plan.KeepOrder();
  EXPECT_TRUE(plan.AlwaysFits());
  ExpectOrdered(plan, p.graph);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(p.graph.FindNode(StrCat("small", i))->control_inputs().empty());
    const Node* const constant = p.graph.FindNode(StrCat("constant", i));
    EXPECT_TRUE(constant->control_inputs().empty());
    EXPECT_TRUE(constant->control_outputs().empty());
  }
}

}  // namespace
}  // namespace penstock
