// SPDX-License-Identifier: Apache-2.0
//
// Tests MemorySimulation one node at a time, as the search for an order uses it: the change of
// memory that it predicts for a node must be the change that happens when the node runs.
#include "core/compiler/memory/memory_simulation.h"

#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class MemorySimulationTest : public testing::Test {
 protected:
  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
            double bytes, const Attrs& attrs = {}) {
    Node* const node = program_.Add(name, op, std::move(inputs), {.attrs = attrs});
    program_.graph.set_assigned_device(node, kWorker);
    if (node->num_outputs() > 0) costs_.RecordOutput(name, 0, bytes);
    order_.push_back(node);
    return node;
  }
  // Runs all nodes in their order. Returns the results of ChangeInBytes, which it calls before each
  // node runs.
  std::vector<double> Changes() const {
    const MemoryModel model(program_.graph, costs_);
    MemorySimulation simulation(model, {});
    std::vector<double> changes;
    for (const Node* node : order_) {
      changes.push_back(simulation.ChangeInBytes(*node));
      simulation.RunNode(*node);
    }
    return changes;
  }
  // Returns the sums of these changes: the memory of the device after each node.
  std::vector<double> Sums() const {
    std::vector<double> sums;
    double now = 0;
    for (const double change : Changes()) sums.push_back(now += change);
    return sums;
  }

  TestProgram program_;
  CostTable costs_;
  std::vector<Node*> order_;
};

TEST_F(MemorySimulationTest, ANodeAddsItsOutputAndFreesWhatItReadsLast) {
  Node* const a = Add("a", "Input", {}, 1000);
  Node* const b = Add("b", "Heavy", {{a, 0}}, 300);
  Node* const c = Add("c", "Heavy", {{b, 0}}, 20);
  Add("d", "Sum2", {{a, 0}, {c, 0}}, 4);
  // Nothing reads the last node's output, so it is freed as soon as the node has run.
  EXPECT_EQ(Changes(), (std::vector<double>{1000, 300, 20 - 300, -1000 - 20}));
  EXPECT_EQ(Sums().back(), 0);
}

TEST_F(MemorySimulationTest, AViewKeepsTheMemoryOfItsInput) {
  Node* const a = Add("a", "Input", {}, 1000);
  Node* const view = Add("view", "Identity", {{a, 0}}, 1000);
  Add("reader", "Heavy", {{view, 0}}, 7);
  EXPECT_EQ(Changes(), (std::vector<double>{1000, 0, -1000}));
}

TEST_F(MemorySimulationTest, AnInputThatIsReadTwiceIsFreedOnce) {
  Node* const a = Add("a", "Input", {}, 1000);
  Node* const b = Add("b", "Sum2", {{a, 0}, {a, 0}}, 10);
  Add("c", "Heavy", {{b, 0}}, 5);
  EXPECT_EQ(Changes(), (std::vector<double>{1000, 10 - 1000, -10}));
}

TEST_F(MemorySimulationTest, AFetchKeepsItsInput) {
  Node* const a = Add("a", "Input", {}, 1000);
  Add("fetch", "_Fetch", {{a, 0}}, 0, {{"T", DType::kFloat}, {"index", int64_t{0}}});
  EXPECT_EQ(Changes(), (std::vector<double>{1000, 0}));
}

// The sums of the predicted changes equal the memory that Run finds between the nodes.
TEST_F(MemorySimulationTest, AgreesWithTheProfileOfTheWholeStep) {
  Node* x = Add("x", "Input", {}, 100);
  std::vector<Node*> kept;
  for (int i = 0; i < 5; ++i) {
    x = Add(StrCat("up", i), "Heavy", {{x, 0}}, 1000.0 * (i + 1));
    kept.push_back(x);
  }
  for (int i = 4; i >= 0; --i) x = Add(StrCat("down", i), "Sum2", {{x, 0}, {kept[i], 0}}, 50 + i);
  const std::vector<double> sums = Sums();
  const MemoryModel model(program_.graph, costs_);
  const MemoryProfile profile = model.Profile(order_);
  ASSERT_EQ(profile.devices.size(), 1u);
  for (size_t i = 1; i < order_.size(); ++i) {
    // While a node runs, its output is in memory, too.
    EXPECT_EQ(profile.devices[0].during[i], sums[i - 1] + model.Bytes({order_[i], 0}))
        << order_[i]->name();
  }
}

}  // namespace
}  // namespace penstock
