// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/running_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_origin.h"
#include "core/base/forwarding_env.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class StoppedClock final : public ForwardingEnv {
 public:
  StoppedClock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns; }
  int64_t now_ns = 1000;
};

class RunningStepTest : public testing::Test {
 protected:
  // Returns the status with which a Send of this step's rendezvous ends.
  Status Sent(TestStep& test_step) {
    return test_step.rendezvous->Send(HashedKey({.tensor = "x"}), Tensor::Scalar<int64_t>(1),
                                      false);
  }
  Status End() {
    step_.FinishWork();
    return step_.End();
  }

  TestTask task_;
  StoppedClock clock_;
  RunningStep step_{{.device = task_.device.get(),
                     .threads = &task_.threads,
                     .env = &clock_,
                     .timer = &DeadlineTimer::Real()}};
};

TEST_F(RunningStepTest, TheFirstFailureIsTheStatusEverywhere) {
  TestGraph g;
  Node* const first = g.Add("NoOp", {}, {}, {}, "first");
  Node* const second = g.Add("NoOp", {}, {}, {}, "second");
  TestStep test_step;
  step_.Begin(test_step.Args());
  EXPECT_FALSE(step_.stopped());
  step_.Fail(*first, InvalidArgument("no good"));
  step_.Fail(*second, Internal("follows"));
  const Status why = AtNode(InvalidArgument("no good"), "first");
  EXPECT_TRUE(step_.stopped());
  EXPECT_TRUE(step_.cancelled());
  EXPECT_EQ(test_step.cancellation.status(), why);
  EXPECT_EQ(Sent(test_step), why);
  EXPECT_EQ(End(), why);
}

TEST_F(RunningStepTest, NothingIsLeftForTheNextStep) {
  step_.Begin({.step_id = 1});  // without a cancellation
  step_.Share();
  step_.Commit();
  step_.Stop(Aborted("the end"));
  EXPECT_EQ(End(), Aborted("the end"));
  step_.Begin({.step_id = 2});
  EXPECT_FALSE(step_.shared());
  EXPECT_FALSE(step_.committed());
  EXPECT_FALSE(step_.stopped());
  EXPECT_FALSE(step_.cancelled());
  EXPECT_EQ(End(), OkStatus());
}

TEST_F(RunningStepTest, ACancellationReachesTheRendezvousAfterRegisterAbort) {
  TestStep test_step;
  step_.Begin(test_step.Args());
  EXPECT_TRUE(step_.RegisterAbort());
  EXPECT_TRUE(step_.RegisterAbort()) << "only the first one registers";
  EXPECT_EQ(Sent(test_step), OkStatus());
  test_step.cancellation.Cancel(Aborted("from outside"));
  EXPECT_EQ(test_step.rendezvous->Send(HashedKey({.tensor = "y"}), Tensor::Scalar(1), false),
            Aborted("from outside"));
  EXPECT_FALSE(step_.stopped()) << "until a node is dropped for it";
  EXPECT_EQ(End(), OkStatus());
}

TEST_F(RunningStepTest, RegisterAbortOfACancelledStepSaysSo) {
  TestStep test_step;
  test_step.cancellation.Cancel(Aborted("from outside"));
  step_.Begin(test_step.Args());
  EXPECT_FALSE(step_.RegisterAbort());
  step_.DropNodes();
  EXPECT_EQ(End(), Aborted("from outside"));
  EXPECT_EQ(Sent(test_step), Aborted("from outside"));
}

TEST_F(RunningStepTest, ACancellationAfterTheEndAbortsNothing) {
  TestStep test_step;
  step_.Begin(test_step.Args());
  ASSERT_TRUE(step_.RegisterAbort());
  EXPECT_EQ(End(), OkStatus());
  test_step.cancellation.Cancel(Aborted("too late"));
  EXPECT_EQ(Sent(test_step), OkStatus());
}

TEST_F(RunningStepTest, TheFirstStepsAndThenAFewAreObserved) {
  std::vector<int> observed;
  for (int i = 0; i < 70; ++i) {
    step_.Begin({.step_id = i});
    if (step_.observed()) observed.push_back(i);
    EXPECT_FALSE(step_.traced());
    EXPECT_EQ(End(), OkStatus());
  }
  EXPECT_EQ(observed, (std::vector<int>{0, 1, 2, 32, 64}));
  StepStatsCollector stats;
  step_.Begin({.step_id = 70, .stats = &stats});
  EXPECT_TRUE(step_.observed());
  EXPECT_TRUE(step_.traced());
  EXPECT_EQ(End(), OkStatus());
}

TEST_F(RunningStepTest, TheDeadlineCountsUntilTheStepIsCancelled) {
  TestStep test_step;
  test_step.deadline_ns = 2000;
  step_.Begin(test_step.Args());
  EXPECT_TRUE(step_.has_deadline());
  EXPECT_FALSE(step_.DeadlinePassed());
  clock_.now_ns = 2000;
  EXPECT_TRUE(step_.DeadlinePassed());
  step_.Stop(DeadlineExceeded("too slow"));
  EXPECT_FALSE(step_.DeadlinePassed());
  EXPECT_THAT(std::string(End().message()), HasSubstr("too slow"));
  step_.Begin({.step_id = 2});
  EXPECT_FALSE(step_.has_deadline());
  EXPECT_EQ(End(), OkStatus());
}

}  // namespace
}  // namespace penstock
