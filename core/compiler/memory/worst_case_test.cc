// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/worst_case.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/memory/memory_plan.h"
#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// A graph whose nodes are added in an order in which they may run.
struct OrderedStep : TestProgram {
  Node* Run(const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
            double bytes, const std::string& device = kWorker) {
    Attrs attrs;
    if (op == "AddN") attrs = {{"N", static_cast<int64_t>(inputs.size())}};
    if (op == "Var") attrs = {{"dtype", EdgeType{DType::kFloat}}, {"shape", PartialShape({1000})}};
    if (op == "_Fetch") attrs = {{"index", int64_t{0}}, {"T", DType::kFloat}};
    Node* const node = Add(name, op, std::move(inputs), {.attrs = std::move(attrs)});
    graph.set_assigned_device(node, device);
    if (node->num_outputs() > 0) costs.RecordOutput(name, 0, bytes);
    order.push_back(node);
    return node;
  }
  // Returns the bound of the first device.
  double WorstBytes() const { return WorstPeaks(MemoryModel(graph, costs), order)[0].bytes; }

  CostTable costs;
  std::vector<Node*> order;
};

TEST(WorstCaseTest, AChainTakesNoMoreThanItsOrder) {
  OrderedStep s;
  Node* last = s.Run("n0", "Noise", {}, 1000);
  for (int i = 1; i < 5; ++i) last = s.Run(StrCat("n", i), "OnGpu", {{last, 0}}, 1000 + i);
  const double peak = MemoryModel(s.graph, s.costs).Profile(s.order).devices[0].peak_bytes;
  EXPECT_EQ(s.WorstBytes(), peak);
}

TEST(WorstCaseTest, IndependentNodesMayRunAtOnce) {
  OrderedStep s;
  for (int i = 0; i < 4; ++i) {
    Node* const made = s.Run(StrCat("made", i), "Noise", {}, 1000);
    s.Run(StrCat("used", i), "Use", {{made, 0}}, 10);
  }
  EXPECT_EQ(MemoryModel(s.graph, s.costs).Profile(s.order).devices[0].peak_bytes, 1010);
  EXPECT_GE(s.WorstBytes(), 4000);
  EXPECT_LE(s.WorstBytes(), 4040);
}

// "sum" certainly reuses the memory of "a" only if "reader" has to end before "sum".
TEST(WorstCaseTest, MemoryIsReusedOnlyIfThatIsSure) {
  for (const bool sure : {false, true}) {
    OrderedStep s;
    Node* const a = s.Run("a", "Noise", {}, 1000);
    Node* const reader = s.Run("reader", "Use", {{a, 0}}, 10);
    Node* const sum = s.Run("sum", "AddN", {{a, 0}}, 1000);
    if (sure) s.graph.AddControlEdge(reader, sum);
    EXPECT_EQ(MemoryModel(s.graph, s.costs).Profile(s.order).devices[0].peak_bytes, 1010);
    EXPECT_EQ(s.WorstBytes(), sure ? 1010 : 2010);
  }
}

// The update may come before the reader of the old value.
TEST(WorstCaseTest, UpdatesMayCopyAVariable) {
  for (const bool sure : {false, true}) {
    OrderedStep s;
    Node* const variable = s.Run("variable", "Var", {}, 0);
    Node* const old = s.Run("old", "Identity", {{variable, 0}}, 4000);
    Node* const reader = s.Run("reader", "Use", {{old, 0}}, 10);
    Node* const by = s.Run("by", "Noise", {}, 10);
    Node* const update = s.Run("update", "Update", {{variable, 0}, {by, 0}}, 0);
    if (sure) s.graph.AddControlEdge(reader, update);
    EXPECT_EQ(s.WorstBytes(), sure ? 20 : 4020);
  }
}

// The first update writes into a copy, and the second one changes this copy in place.
TEST(WorstCaseTest, AVariableIsCopiedOnceForASnapshot) {
  OrderedStep s;
  Node* const variable = s.Run("variable", "Var", {}, 0);
  Node* const old = s.Run("old", "Identity", {{variable, 0}}, 4000);
  Node* const by = s.Run("by", "Noise", {}, 10);
  Node* const first = s.Run("first", "Update", {{variable, 0}, {by, 0}}, 0);
  Node* const second = s.Run("second", "Update", {{variable, 0}, {by, 0}}, 0);
  s.Run("reader", "Use", {{old, 0}}, 10);
  s.graph.AddControlEdge(old, first);
  s.graph.AddControlEdge(first, second);
  EXPECT_EQ(s.WorstBytes(), 4020);
}

// Returns the nodes in a random order that their edges allow. A Merge runs after any one input.
std::vector<Node*> Shuffled(const std::vector<Node*>& order, std::mt19937* random) {
  std::vector<Node*> left = order, shuffled;
  std::vector<bool> done(1000);
  while (!left.empty()) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < left.size(); ++i) {
      bool waits = false;
      const auto open = [&](const Endpoint& in) { return !done[in.node->id()]; };
      waits = left[i]->op().flow == FlowOp::kMerge ? std::ranges::all_of(left[i]->inputs(), open)
                                                   : std::ranges::any_of(left[i]->inputs(), open);
      for (const Node* in : left[i]->control_inputs()) waits |= !done[in->id()];
      if (!waits) ready.push_back(i);
    }
    const size_t next = ready[(*random)() % ready.size()];
    done[left[next]->id()] = true;
    shuffled.push_back(left[next]);
    left.erase(left.begin() + static_cast<int64_t>(next));
  }
  return shuffled;
}

// Returns a step of random nodes that read one or two recent values, and variables that are read
// and updated.
OrderedStep RandomStep(std::mt19937* random, const char* other_device) {
  OrderedStep s;
  std::vector<Endpoint> values = {{s.Run("n0", "Noise", {}, 1000), 0}};
  std::vector<Node*> variables;
  const auto any = [&] { return values[(*random)() % values.size()]; };
  for (int i = 1; i < 30; ++i) {
    const std::string name = StrCat("n", i), device = (*random)() % 4 == 0 ? other_device : kWorker;
    const double bytes = 100.0 * static_cast<double>((*random)() % 3 + 1);
    switch ((*random)() % 8) {
      case 0:
        values.push_back({s.Run(name, "Noise", {}, bytes, device), 0});
        break;
      case 1:
        values.push_back({s.Run(name, "Identity", {any()}, bytes, device), 0});
        break;
      case 2:
        values.push_back({s.Run(name, "Sum2", {any(), any()}, bytes, device), 0});
        break;
      case 3:
        variables.push_back(s.Run(name, "Var", {}, bytes, kWorker));
        break;
      case 4:
        if (variables.empty()) continue;
        values.push_back({s.Run(name, "Identity", {{variables.back(), 0}}, bytes, kWorker), 0});
        break;
      case 5:
        if (variables.empty()) continue;
        s.Run(name, "Update", {{variables.back(), 0}, any()}, bytes, kWorker);
        break;
      case 6:
        values.push_back({s.Run(name, "AddN", {any(), any()}, bytes, device), 0});
        break;
      default:
        values.push_back({s.Run(name, "Product", {any(), any()}, bytes, device), 0});
    }
  }
  return s;
}

TEST(WorstCaseTest, NoOrderTakesMore) {
  std::mt19937 random(1);
  int differ = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const OrderedStep s = RandomStep(&random, kPs);
    const MemoryModel model(s.graph, s.costs);
    const std::vector<WorstPeak> worst = WorstPeaks(model, s.order);
    for (int i = 0; i < 30; ++i) {
      const MemoryProfile profile = model.Profile(Shuffled(s.order, &random));
      for (size_t d = 0; d < worst.size(); ++d) {
        EXPECT_LE(profile.devices[d].peak_bytes, worst[d].bytes);
        differ += profile.devices[d].peak_bytes < worst[d].bytes;
      }
    }
  }
  EXPECT_GT(differ, 0);
}

// The update copies the value that `view` shows, although `view` runs after the update. So the
// second update, after `view`, has nothing to copy.
TEST(WorstCaseTest, AViewNeedsTheValueOfItsSnapshot) {
  OrderedStep s;
  Node* const variable = s.Run("variable", "Var", {}, 0);
  Node* const old = s.Run("old", "Identity", {{variable, 0}}, 4000);
  Node* const by = s.Run("by", "Noise", {}, 10);
  Node* const first = s.Run("first", "Update", {{variable, 0}, {by, 0}}, 0);
  Node* const view = s.Run("view", "Identity", {{old, 0}}, 4000);
  Node* const second = s.Run("second", "Update", {{variable, 0}, {by, 0}}, 0);
  Node* const middle = s.Run("middle", "Noise", {}, 1000);
  Node* const reader = s.Run("reader", "Use", {{view, 0}}, 20);
  Node* last = variable;
  for (Node* node : {old, by, first, view, second, middle, reader}) {
    s.graph.AddControlEdge(last, node);
    last = node;
  }
  EXPECT_EQ(MemoryModel(s.graph, s.costs).Profile(s.order).devices[0].peak_bytes, 5000);
  EXPECT_EQ(s.WorstBytes(), 5000);
}

// The producer cannot free a tensor before it is sent, and nothing says when that is.
TEST(WorstCaseTest, SentTensorsMayPileUp) {
  OrderedStep s;
  Node* last = nullptr;
  for (int i = 0; i < 4; ++i) {
    Node* const made = s.Run(StrCat("made", i), "Noise", {}, 1000);
    if (last != nullptr) s.graph.AddControlEdge(last, made);
    s.Run(StrCat("read", i), "Use", {{made, 0}}, 10, kPs);
    last = made;
  }
  const std::vector<WorstPeak> worst = WorstPeaks(MemoryModel(s.graph, s.costs), s.order);
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_EQ(worst[1].bytes, 4000) << "on the worker";
  EXPECT_EQ(worst[1].tensors.size(), 4u);
  EXPECT_FALSE(worst[1].tensors[0].received);
  ASSERT_NE(worst[0].at, nullptr);
  EXPECT_TRUE(worst[0].tensors.at(0).received);
}

// A node of another task that waits for nothing here does not make all tensors of this device live
// at once.
TEST(WorstCaseTest, OnlyMakersOnADeviceRaiseItsBound) {
  OrderedStep s;
  Node* last = s.Run("large0", "Noise", {}, 1000);
  for (int i = 1; i < 4; ++i) last = s.Run(StrCat("large", i), "Use", {{last, 0}}, 1000);
  // A longer path of nodes without memory: the bound by the longest chain is coarse.
  last = s.Run("empty0", "Noise", {}, 0);
  for (int i = 1; i < 8; ++i) last = s.Run(StrCat("empty", i), "Use", {{last, 0}}, 0);
  s.Run("other", "Noise", {}, 10, kPs);
  const std::vector<WorstPeak> worst = WorstPeaks(MemoryModel(s.graph, s.costs), s.order);
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_EQ(worst[0].bytes, 10) << "on the ps";
  EXPECT_EQ(worst[1].bytes, 2000);
}

// A limit that is well above the peak of the predicted order, but not of other orders.
double LimitAbovePeak(const OrderedStep& s) {
  double limit = 0;
  for (const auto& device : MemoryModel(s.graph, s.costs).Profile(s.order).devices) {
    limit = std::max(limit, 1.2 * device.peak_bytes);
  }
  return limit;
}

void ExpectNoOrderExceeds(double limit, const OrderedStep& s, std::mt19937* random) {
  const MemoryModel model(s.graph, s.costs);
  for (int i = 0; i < 20; ++i) {
    const MemoryProfile profile = model.Profile(Shuffled(s.order, random));
    for (const auto& device : profile.devices) EXPECT_LE(device.peak_bytes, limit);
  }
}

// On one device, a kept order takes exactly what was predicted.
TEST(WorstCaseTest, AnOrderThatMattersIsKept) {
  std::mt19937 random(2);
  int kept = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    OrderedStep s = RandomStep(&random, kWorker);
    const double limit = LimitAbovePeak(s);
    MemoryPlan plan(&s.graph, s.costs, s.order, limit);
    if (!plan.IsNearLimit()) continue;
    ++kept;
    plan.KeepOrder();
    EXPECT_TRUE(plan.AlwaysFits());
    EXPECT_EQ(plan.AtWorst()[0].bytes, plan.profile().devices[0].peak_bytes);
    ExpectNoOrderExceeds(limit, s, &random);
  }
  EXPECT_GT(kept, 60);
}

// Two devices run at their own pace, unless their transfers would exceed the limit. If the order
// still cannot be kept, the plan says so.
TEST(WorstCaseTest, APlanForSeveralDevicesHoldsOrSaysThatItDoesNot) {
  std::mt19937 random(3);
  int kept = 0, open = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    OrderedStep s = RandomStep(&random, kPs);
    const double limit = LimitAbovePeak(s);
    MemoryPlan plan(&s.graph, s.costs, s.order, limit);
    if (!plan.IsNearLimit()) continue;
    plan.KeepOrder();
    if (!plan.AlwaysFits()) {
      ++open;
      continue;
    }
    ++kept;
    ExpectNoOrderExceeds(limit, s, &random);
  }
  EXPECT_GT(kept, 60);
  EXPECT_EQ(open, 0);
}

// "later" may run while "big", of the branch that comes last, is in memory.
TEST(WorstCaseTest, AMergeMayRunAfterOneBranch) {
  OrderedStep s;
  Node* const data = s.Run("data", "Noise", {}, 10);
  Node* const pred = s.Run("pred", "Noise", {}, 10);
  Node* const choice = s.Run("choice", "Switch", {{data, 0}, {pred, 0}}, 10);
  Node* const left = s.Run("left", "Heavy", {{choice, 0}}, 10);
  Node* const big = s.Run("big", "Heavy", {{choice, 1}}, 4000);
  Node* const right = s.Run("right", "Heavy", {{big, 0}}, 10);
  Node* const merge = s.Run("merge", "Merge", {{left, 0}, {right, 0}}, 10);
  Node* const later = s.Run("later", "Heavy", {{merge, 0}}, 4000);
  s.Run("last", "Use", {{later, 0}}, 10);
  const double worst = s.WorstBytes();
  const MemoryModel model(s.graph, s.costs);
  std::mt19937 random(4);
  double most = 0;
  for (int i = 0; i < 200; ++i) {
    most = std::max(most, model.Profile(Shuffled(s.order, &random)).devices[0].peak_bytes);
  }
  EXPECT_GT(most, 8000) << "one of the orders has both in memory";
  EXPECT_LE(most, worst);
}

// A fetch keeps what it fetches until the step has ended, in its own memory.
TEST(WorstCaseTest, AFetchKeepsNoMemoryOfAnotherDevice) {
  for (const char* const device : {kPs, kWorker}) {
    OrderedStep s;
    Node* const made = s.Run("made", "Noise", {}, 1000, kPs);
    Node* const fetch = s.Run("fetch", "_Fetch", {{made, 0}}, 0, device);
    Node* const after = s.Run("after", "Noise", {}, 1000, kPs);
    s.graph.AddControlEdge(fetch, after);
    EXPECT_EQ(s.WorstBytes(), device == kPs ? 2000 : 1000);
  }
}

}  // namespace
}  // namespace penstock
