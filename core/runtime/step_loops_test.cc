// SPDX-License-Identifier: Apache-2.0
//
// Tests StepLoops with one loop of one value and up to two iterations at once. The test's thread
// runs the loop's nodes step by step.
#include "core/runtime/step_loops.h"

#include <gtest/gtest.h>

#include "core/runtime/executable.h"
#include "core/runtime/testing/test_flow.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using Values = FlowBuilder::Values;

Graph OneLoop() {
  FlowBuilder b;
  const Values results = b.While(
      {"loop", 2}, {b.Sum("TestSum", {})},
      [&](const Values& v) { return b.Call("TestOdd", {v[0]}); },
      [&](const Values& v) { return Values{b.Sum("TestSum", {v[0]})}; });
  b.Fetch(results[0], 0);
  return b.Take();
}

class StepLoopsTest : public testing::Test {
 protected:
  StepLoopsTest() { BeginStep(); }

  void BeginStep() {
    step_.Begin({});
    loops_.Begin();
    ready_.here = &loops_.root();
  }
  const Executable::Item& ItemOf(FlowOp flow) {
    for (uint32_t i = 0; i < executable_->num_items(); ++i) {
      if (executable_->items()[i].flow == flow) return executable_->items()[i];
    }
    ADD_FAILURE() << "no such node";
    return executable_->items()[0];
  }
  void Enter() {
    value_ = Tensor::Scalar<int64_t>(1);
    loops_.Enter(loops_.root(), ItemOf(FlowOp::kEnter), &value_, /*dead=*/false, ready_);
  }
  void Next(Iteration& it) {
    value_ = Tensor::Scalar<int64_t>(2);
    loops_.NextIteration(it, ItemOf(FlowOp::kNextIteration), &value_, ready_);
  }
  Status Exit(Iteration& it) {
    value_ = Tensor::Scalar<int64_t>(3);
    return loops_.Exit(it, ItemOf(FlowOp::kExit), &value_, ready_);
  }
  // Pops and returns the ready node, which must be the only one, that belongs to another iteration
  // than ready_.here. The caller takes over the node's hold on its iteration.
  ReadyNode TakeFromOtherIteration() {
    EXPECT_EQ(ready_.other_iterations.size(), 1);
    if (ready_.other_iterations.empty()) return {&loops_.root(), 0};
    const ReadyNode node = ready_.other_iterations.back();
    ready_.other_iterations.pop_back();
    return node;
  }
  // Returns the consumer of the loop's result.
  uint32_t Fetch() { return executable_->edges()[ItemOf(FlowOp::kExit).first_edge].dst; }

  TestTask task_;
  std::unique_ptr<Executable> executable_ = *Executable::Make(OneLoop(), *task_.device);
  RunningStep step_{{.device = task_.device.get(),
                     .threads = &task_.threads,
                     .env = &Env::Real(),
                     .timer = &DeadlineTimer::Real()}};
  StepLoops loops_{*executable_, step_};
  ReadyQueues ready_;
  Tensor value_;
};

TEST_F(StepLoopsTest, TheFirstEnterBeginsTheLoopAndItsFirstIteration) {
  EXPECT_FALSE(loops_.AnyRunning());
  Enter();
  EXPECT_TRUE(loops_.AnyRunning());
  const ReadyNode merge = TakeFromOtherIteration();
  EXPECT_EQ(merge.iteration->items[merge.node].flow, FlowOp::kMerge);
  EXPECT_EQ(merge.iteration->number, 0);
  EXPECT_NE(merge.iteration->frame_id, 0);
  EXPECT_EQ(
      merge.iteration->inputs[merge.iteration->items[merge.node].first_input].scalar<int64_t>(), 1);
  EXPECT_EQ(merge.iteration->holds, 1) << "that of the node; the only Enter has come";
}

TEST_F(StepLoopsTest, ValuesForAnIterationTooManyWaitUntilOneHasEnded) {
  Enter();
  Iteration& first = *TakeFromOtherIteration().iteration;
  Next(first);
  Iteration& second = *TakeFromOtherIteration().iteration;
  EXPECT_EQ(second.number, 1);
  EXPECT_EQ(loops_.DescribeFrames(), "; it was in iteration 1 of loop 'loop'");
  Next(second);
  EXPECT_TRUE(ready_.other_iterations.empty()) << "two are in flight";
  EXPECT_FALSE(value_.valid()) << "it has been taken all the same";
  loops_.Release(first, ready_);
  const ReadyNode merge = TakeFromOtherIteration();
  EXPECT_EQ(merge.iteration->number, 2);
  // The second input of the Merge comes from the NextIteration.
  const uint32_t slot = merge.iteration->items[merge.node].first_input + 1;
  ASSERT_TRUE(merge.iteration->inputs[slot].valid());
  EXPECT_EQ(merge.iteration->inputs[slot].scalar<int64_t>(), 2);
}

TEST_F(StepLoopsTest, AnIterationIsHeldByTheOneBeforeIt) {
  Enter();
  Iteration& first = *TakeFromOtherIteration().iteration;
  Next(first);
  Iteration& second = *TakeFromOtherIteration().iteration;
  loops_.Release(second, ready_);
  EXPECT_TRUE(loops_.AnyRunning());
  EXPECT_EQ(second.holds, 1);
  loops_.Release(first, ready_);
  EXPECT_FALSE(loops_.AnyRunning()) << "both have ended";
}

TEST_F(StepLoopsTest, AValueLeavesByAnExitOnce) {
  Enter();
  Iteration& first = *TakeFromOtherIteration().iteration;
  EXPECT_EQ(Exit(first), OkStatus());
  EXPECT_EQ(ready_.cheap, std::vector<uint32_t>{Fetch()}) << "here: outside of loops";
  EXPECT_EQ(Exit(first), InvalidArgument("loop 'loop' is left twice"));
  EXPECT_FALSE(value_.valid());
  loops_.Release(first, ready_);
  EXPECT_EQ(ready_.cheap.size(), 1) << "nothing more leaves when the loop ends";
  EXPECT_FALSE(loops_.AnyRunning());
}

TEST_F(StepLoopsTest, WhatNeverLeavesALoopLeavesItDeadWhenItEnds) {
  Enter();
  Iteration& first = *TakeFromOtherIteration().iteration;
  EXPECT_TRUE(ready_.cheap.empty());
  loops_.Release(first, ready_);
  EXPECT_EQ(ready_.cheap, std::vector<uint32_t>{Fetch() | Executable::kDead});
}

TEST_F(StepLoopsTest, IterationsAreUsedAgainByTheNextStep) {
  Enter();
  Iteration& first = *TakeFromOtherIteration().iteration;
  loops_.Release(first, ready_);
  loops_.End(/*clear=*/false);
  ready_.Drop();
  BeginStep();
  Enter();
  EXPECT_EQ(TakeFromOtherIteration().iteration, &first);
}

TEST_F(StepLoopsTest, AStepThatHasFailedLeavesNothingBehind) {
  Enter();
  const ReadyNode merge = TakeFromOtherIteration();
  Next(*merge.iteration);
  loops_.End(/*clear=*/true);
  EXPECT_FALSE(loops_.AnyRunning());
  EXPECT_FALSE(merge.iteration->inputs[merge.iteration->items[merge.node].first_input].valid());
  ready_.Drop();
  BeginStep();
  Enter();
  EXPECT_EQ(TakeFromOtherIteration().iteration->number, 0);
  EXPECT_EQ(loops_.DescribeFrames(), "; it was in iteration 0 of loop 'loop'");
}

TEST_F(StepLoopsTest, InASharedStepTheLockIsReleasedBetweenCalls) {
  step_.Share();
  Enter();
  Iteration& first = *TakeFromOtherIteration().iteration;
  Next(first);
  loops_.Release(*TakeFromOtherIteration().iteration, ready_);
  EXPECT_EQ(Exit(first), OkStatus());
  loops_.Release(first, ready_);
  EXPECT_EQ(loops_.DescribeFrames(), "");
  EXPECT_FALSE(loops_.AnyRunning());
}

}  // namespace
}  // namespace penstock
