// SPDX-License-Identifier: Apache-2.0
#include "client/step_progress.h"

#include "client/optimizers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

class StepProgressTest : public testing::Test {
 protected:
  StepProgressTest() : w_(program_, "w", {}, Ones()) {}

  // Adds `count` steps that leave the global step at `step`. Returns all lines that were printed.
  static std::vector<std::string> Steps(StepProgress& progress, int64_t count, int64_t step) {
    std::vector<std::string> lines;
    for (int64_t i = 0; i < count; ++i) {
      std::string line;
      const Status status = progress.Add(step, &line);
      EXPECT_EQ(status, OkStatus());
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }
  Output Raises() {
    return program_.GlobalStep().AssignAdd(Constant(program_, Tensor::Scalar<int64_t>(1)));
  }
  Output LeavesIt() { return w_.AssignAdd(Constant(program_, Tensor::Scalar(1.0f))); }

  Program program_;
  const Variable w_;
};

TEST_F(StepProgressTest, AStepThatGoesOnHasNothingToSay) {
  StepProgress progress(program_, Raises(), 5);
  for (int64_t step = 1; step <= 2'000; ++step) {
    std::string line;
    EXPECT_EQ(progress.Add(step, &line), OkStatus());
    EXPECT_EQ(line, "");
  }
}

TEST_F(StepProgressTest, ATrainOpThatCannotRaiseItIsToldSoonAndEnds) {
  StepProgress progress(program_, LeavesIt(), 150);
  const auto lines = Steps(progress, 150, 7);
  ASSERT_EQ(lines.size(), 1u) << "said once";
  EXPECT_THAT(lines[0], HasSubstr("100 steps in a row have left global_step"));
  EXPECT_THAT(lines[0], HasSubstr("at 7, and train op 'w/AssignAdd' has no node that changes it"));
  std::string line;
  const Status ended = progress.Add(7, &line);
  EXPECT_EQ(ended.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("the training would never end"));
}

TEST_F(StepProgressTest, OneThatMayRaiseItIsGivenTimeAndNeverEnded) {
  StepProgress progress(program_, Raises(), 5);
  const int64_t said_after = 10 * StepProgress::kWarnAfterSteps;
  EXPECT_TRUE(Steps(progress, said_after, 7).empty());
  const auto lines = Steps(progress, 5'000, 7);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::Not(HasSubstr("train op")));
}

TEST_F(StepProgressTest, AChangeBeginsTheCountAgain) {
  StepProgress progress(program_, LeavesIt(), 50);
  for (int64_t step = 1; step <= 10; ++step) {
    EXPECT_TRUE(Steps(progress, 50, step).empty()) << "the first of each is a change";
  }
}

TEST_F(StepProgressTest, ZeroMeansThatAnyNumberGoesOn) {
  StepProgress progress(program_, LeavesIt(), 0);
  EXPECT_EQ(Steps(progress, 10'000, 7).size(), 1u);
}

// A step that only reads the global step does not change it.
TEST_F(StepProgressTest, ReadingIsNoChange) {
  const auto after = program_.ControlDependencies({program_.GlobalStep().Read()});
  StepProgress progress(program_, LeavesIt(), 10);
  Steps(progress, 10, 7);
  std::string line;
  EXPECT_FALSE(progress.Add(7, &line).ok()) << "ten in a row";
}

}  // namespace
}  // namespace penstock::client
