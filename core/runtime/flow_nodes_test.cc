// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/flow_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>

#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// An executable of one control-flow node with its inputs, outside of loops.
class FlowNodesTest : public testing::Test {
 protected:
  // Makes the executable. `node` is a node of g_.
  void Make(const Node* node) {
    const std::string name = node->name();
    auto made = Executable::Make(g_.Take(), *task_.device);
    CHECK_OK(made.status());
    executable_ = *std::move(made);
    iteration_ = std::make_unique<Iteration>(*executable_, executable_->loops()[0]);
    for (uint32_t i = 0; i < executable_->num_items(); ++i) {
      if (executable_->items()[i].node->name() == name) item_ = &executable_->items()[i];
    }
  }
  void SetInput(int i, Tensor value) {
    iteration_->inputs[item_->first_input + i] = std::move(value);
  }
  Status Compute() {
    outputs_ = {};
    return ComputeFlow(*iteration_, *item_, outputs_.data());
  }
  Node* Switch() {
    return g_.Add("Switch", {g_.Feed(0), g_.Feed(1, DType::kBool)}, {{"T", DType::kInt64}});
  }
  Node* Merge() {
    return g_.Add("Merge", {g_.Feed(0), g_.Feed(1)}, {{"N", int64_t{2}}, {"T", DType::kInt64}});
  }

  TestTask task_;
  TestGraph g_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<Iteration> iteration_;
  const Executable::Item* item_ = nullptr;
  std::array<Tensor, 2> outputs_;
};

TEST_F(FlowNodesTest, ASwitchGivesItsValueToOneOutput) {
  Make(Switch());
  for (const bool taken : {false, true}) {
    SetInput(0, Tensor::Scalar<int64_t>(7));
    SetInput(1, Tensor::Scalar(taken));
    ASSERT_TRUE(Compute().ok());
    EXPECT_EQ(outputs_[taken].scalar<int64_t>(), 7);
    EXPECT_FALSE(outputs_[!taken].valid()) << "the other branch is dead";
  }
}

TEST_F(FlowNodesTest, ThePredicateOfASwitchIsAScalar) {
  Make(Switch());
  SetInput(0, Tensor::Scalar<int64_t>(7));
  SetInput(1, Tensor::Of<bool>({1}, {true}));
  const Status status = Compute();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("must be a scalar, but it has shape [1]"));
}

TEST_F(FlowNodesTest, AMergeTakesTheInputThatIsAlive) {
  Node* const merge = Merge();
  g_.Fetch(merge, 0);
  Make(merge);
  SetInput(1, Tensor::Scalar<int64_t>(8));
  ASSERT_TRUE(Compute().ok());
  EXPECT_EQ(outputs_[0].scalar<int64_t>(), 8);
  EXPECT_FALSE(outputs_[1].valid()) << "nothing consumes the index";
}

TEST_F(FlowNodesTest, AMergeTellsTheIndexToItsConsumers) {
  Node* const merge = Merge();
  g_.Fetch(merge, 0, /*output=*/1);
  Make(merge);
  SetInput(1, Tensor::Scalar<int64_t>(8));
  ASSERT_TRUE(Compute().ok());
  EXPECT_EQ(outputs_[1].scalar<int32_t>(), 1);
}

TEST_F(FlowNodesTest, ADeadFetchNamesTheSwitchBeforeIt) {
  Node* const branches = Switch();
  Node* const passed = g_.Add("TestPass", {branches}, {{"T", DType::kInt64}}, {}, "passed");
  const Status status = DeadFetchError(*g_.Fetch(passed, 3));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            StrCat("Retval[3] does not have value: 'passed' lies on a branch not taken, behind '",
                   branches->name(), "' (Switch)"));
}

// A dead value may also come from another task, or depend on a dead node by a control edge alone.
TEST_F(FlowNodesTest, ADeadFetchWithoutASwitchNamesItsInput) {
  Node* const branches = Switch();
  Node* const pivot = g_.Add("TestPass", {branches}, {{"T", DType::kInt64}});
  Node* const after = g_.Add("TestPass", {g_.Feed(2)}, {{"T", DType::kInt64}}, {pivot}, "after");
  EXPECT_THAT(std::string(DeadFetchError(*g_.Fetch(after, 0)).message()),
              HasSubstr(StrCat("behind '", branches->name(), "'")));
  Node* const feed = g_.Feed(3);
  EXPECT_EQ(
      DeadFetchError(*g_.Fetch(feed, 1)).message(),
      StrCat("Retval[1] does not have value: '", feed->name(), "' lies on a branch not taken"));
}

}  // namespace
}  // namespace penstock
