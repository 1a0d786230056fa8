// SPDX-License-Identifier: Apache-2.0
//
// Tests single attempts to free a buffer for a part of the step: their changes, the cases in which
// they fail, and that Undo undoes all changes.
#include "core/compiler/memory/restoring.h"

#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Method = MemoryPlan::Method;

// large = `op`(input); middle reads it early, late reads it after the peak.
class RestoringTest : public testing::Test {
 protected:
  void Make(const std::string& op) {
    Node* const input = Add("input", "Noise", {}, 10);
    large_ = Add("large", op, {{input, 0}}, 20'000);
    middle_ = Add("middle", "Product", {{large_, 0}, {large_, 0}}, 100);
    peak_ = Add("peak", "Use", {{middle_, 0}}, 1000);
    late_ = Add("late", "Product", {{peak_, 0}, {large_, 0}}, 100);
    Add("reads_input", "Product", {{late_, 0}, {input, 0}}, 10);
    plan_ = std::make_unique<MemoryPlan>(&program_.graph, costs_, order_, /*limit=*/10'000);
  }
  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
            double bytes) {
    Node* const node = program_.Add(name, op, std::move(inputs));
    program_.graph.set_assigned_device(node, kWorker);
    costs_.RecordOutput(name, 0, bytes);
    order_.push_back(node);
    return node;
  }
  // Returns an attempt to free the buffer of large_ while peak_ runs.
  Restoring Attempt(Method method) {
    int buffer = -1;
    const auto& buffers = plan_->profile().buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].value.node == large_) buffer = static_cast<int>(i);
    }
    return Restoring(plan_.get(), buffer, /*position=*/3, method);
  }
  std::vector<std::string> Order() const {
    std::vector<std::string> names;
    for (const Node* node : plan_->order()) names.push_back(node->name());
    return names;
  }
  static bool Applied(Restoring& attempt) {
    const StatusOr<bool> applied = attempt.Apply();
    CHECK_OK(applied.status());
    return *applied;
  }

  TestProgram program_;
  CostTable costs_;
  std::vector<Node*> order_;
  Node *large_ = nullptr, *middle_ = nullptr, *peak_ = nullptr, *late_ = nullptr;
  std::unique_ptr<MemoryPlan> plan_;
};

TEST_F(RestoringTest, RecomputesForTheLateReaderOnly) {
  Make("Heavy");
  Restoring attempt = Attempt(Method::kRecompute);
  ASSERT_TRUE(Applied(attempt));
  EXPECT_EQ(attempt.num_added(), 1);
  EXPECT_EQ(middle_->input(0).node, large_);
  const Node* const again = late_->input(1).node;
  EXPECT_EQ(again->name(), "_again_large");
  EXPECT_EQ(again->op_name(), "Heavy");
  EXPECT_EQ(again->input(0).node->name(), "input");
  EXPECT_EQ(again->assigned_device(), kWorker);
  EXPECT_EQ(Order(), (std::vector<std::string>{"input", "large", "middle", "peak", "_again_large",
                                               "late", "reads_input"}));
}

TEST_F(RestoringTest, UndoTakesAllOfItBack) {
  Make("Heavy");
  const std::vector<std::string> before = Order();
  const int nodes = program_.graph.num_nodes();
  for (const Method method : {Method::kRecompute, Method::kSwap}) {
    Restoring attempt = Attempt(method);
    ASSERT_TRUE(Applied(attempt));
    ASSERT_GT(program_.graph.num_nodes(), nodes);
    attempt.Undo();
    EXPECT_EQ(program_.graph.num_nodes(), nodes);
    EXPECT_EQ(late_->input(1).node, large_);
    EXPECT_EQ(Order(), before);
    EXPECT_TRUE(program_.graph.Validate().ok()) << program_.graph.Validate();
  }
}

TEST_F(RestoringTest, AStatefulNodeIsSwappedButNotRunAgain) {
  Make("Use");
  Restoring again = Attempt(Method::kRecompute);
  EXPECT_FALSE(Applied(again));
  again.Undo();
  Restoring swap = Attempt(Method::kSwap);
  ASSERT_TRUE(Applied(swap));
  EXPECT_EQ(swap.num_added(), 2);
  const Node* const in = late_->input(1).node;
  EXPECT_EQ(in->op_name(), "_SwapIn");
  EXPECT_EQ(in->input(0).node->op_name(), "_SwapOut");
  EXPECT_EQ(in->input(0).node->input(0).node, large_);
}

TEST_F(RestoringTest, ABufferWithoutLateReadersIsLeftAlone) {
  Make("Heavy");
  CHECK_OK(program_.graph.SetInput(late_, 1, {peak_, 0}));
  plan_ = std::make_unique<MemoryPlan>(&program_.graph, costs_, order_, /*limit=*/10'000);
  Restoring attempt = Attempt(Method::kRecompute);
  EXPECT_FALSE(Applied(attempt));
  attempt.Undo();
}

// The reader is the node that runs while the buffer is freed, so the copy would have to wait for
// its own reader.
TEST_F(RestoringTest, ANodeThatReadsTheBufferAtThePeakPreventsIt) {
  Make("Heavy");
  Node* const also = Add("also", "Product", {{large_, 0}, {peak_, 0}}, 10);
  plan_ = std::make_unique<MemoryPlan>(&program_.graph, costs_, order_, /*limit=*/10'000);
  int buffer = -1;
  const auto& buffers = plan_->profile().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].value.node == large_) buffer = static_cast<int>(i);
  }
  Restoring attempt(plan_.get(), buffer, static_cast<int>(order_.size()) - 1, Method::kRecompute);
  EXPECT_EQ(order_.back(), also);
  EXPECT_FALSE(Applied(attempt));
  attempt.Undo();
}

}  // namespace
}  // namespace penstock
