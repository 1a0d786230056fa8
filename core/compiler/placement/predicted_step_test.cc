// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/predicted_step.h"

#include "core/compiler/placement/testing/problems.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Input = PlacementProblem::Input;

class PredictedStepTest : public testing::Test {
 protected:
  int Add(double nanos, const std::vector<Input>& inputs, double bytes = 0) {
    const int node = problem_.num_nodes();
    problem_.candidates.push_back({0, 1});
    problem_.AddNode(node, inputs, {nanos});
    problem_.output_bytes.push_back(bytes);
    return node;
  }
  PredictedStep Predict(const std::vector<int>& devices) {
    return PredictStep(problem_, devices, UpwardRanks(problem_));
  }

  // The master is in the task of device 0; a message takes 10 ns plus 1 ns per byte.
  PlacementProblem problem_ = EqualDevices(2, 10, 1);
};

TEST_F(PredictedStepTest, ALaneRunsOneNodeAtATime) {
  for (int i = 0; i < 3; ++i) Add(100, {});
  EXPECT_EQ(Predict({0, 0, 0}).end_ns, 300);
  problem_.devices[0].lanes = 2;
  EXPECT_EQ(Predict({0, 0, 0}).end_ns, 200);
}

TEST_F(PredictedStepTest, OtherTasksStartAndEndAMessageLater) {
  Add(100, {});
  EXPECT_EQ(Predict({0}).end_ns, 100);
  EXPECT_EQ(Predict({1}).end_ns, 120);
  EXPECT_EQ(Predict({1}).runs[0].start_ns, 10);
}

TEST_F(PredictedStepTest, AnOutputIsSentOnceToADevice) {
  const int a = Add(100, {}, 50);
  Add(1, {{a, 0}});
  Add(1, {{a, 0}});
  const PredictedStep step = Predict({0, 1, 1});
  ASSERT_EQ(step.transfers.size(), 1u);
  EXPECT_EQ(step.transfers[0].start_ns, 100);
  EXPECT_EQ(step.transfers[0].end_ns, 160);
  EXPECT_EQ(step.end_ns, 160 + 1 + 1 + 10);
}

TEST_F(PredictedStepTest, TransfersOfATaskQueue) {
  const int a = Add(100, {}, 50), b = Add(100, {}, 50);
  problem_.devices[0].lanes = 2;
  Add(1, {{a, 0}, {b, 1}});
  const PredictedStep step = Predict({0, 0, 1});
  ASSERT_EQ(step.transfers.size(), 2u);
  EXPECT_EQ(step.transfers[1].start_ns, 150) << "latencies overlap, bytes do not";
  EXPECT_EQ(step.runs[2].start_ns, 210);
}

TEST_F(PredictedStepTest, AControlEdgeIsAMessageWithoutBytes) {
  const int a = Add(100, {}, 1'000'000);
  Add(1, {{a, -1}});
  EXPECT_EQ(Predict({0, 1}).runs[1].start_ns, 110);
}

TEST_F(PredictedStepTest, TheLongestWayGoesFirst) {
  Add(100, {});
  const int b = Add(100, {});
  Add(500, {{b, 1}});
  const PredictedStep step = Predict({0, 0, 0});
  EXPECT_EQ(step.runs[b].start_ns, 0);
}

// Every node of a random step runs once, after its inputs, and no lane runs two at a time.
TEST(PredictStepTest, RandomStepsKeepTheRules) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    PlacementProblem problem = RandomProblem(seed, {.nodes = 40, .devices = 3});
    problem.devices[seed % 3].lanes = 2;
    std::vector<int> devices;
    for (int g = 0; g < problem.num_groups(); ++g) devices.push_back((g * 7 + g / 3) % 3);
    const PredictedStep step = PredictStep(problem, devices, UpwardRanks(problem));
    for (int node = 0; node < problem.num_nodes(); ++node) {
      const PredictedStep::Run& run = step.runs[node];
      EXPECT_EQ(run.device, devices[node]);
      EXPECT_NEAR(run.end_ns - run.start_ns, problem.Nanos(node, run.device), 1e-6);
      for (int i = problem.first_input[node]; i < problem.first_input[node + 1]; ++i) {
        EXPECT_GE(run.start_ns, step.runs[problem.inputs[i].node].end_ns);
      }
      EXPECT_GE(step.end_ns, run.end_ns);
      for (int other = 0; other < node; ++other) {
        const PredictedStep::Run& before = step.runs[other];
        if (before.device != run.device || before.lane != run.lane) continue;
        EXPECT_TRUE(before.end_ns <= run.start_ns || run.end_ns <= before.start_ns);
      }
    }
    EXPECT_GE(step.end_ns, LowerBoundNanos(problem));
  }
}

}  // namespace
}  // namespace penstock
