// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/predicted_cluster.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr double kLatency = 1'000;

// Returns a worker's step: each of `ps` servers sends 1000 bytes to the worker, at one byte per
// nanosecond; then the worker computes for `compute_ns`. The worker's task is 0.
PlacedStep StepOf(int ps, double compute_ns) {
  PlacedStep step;
  PlacementProblem& problem = step.problem;
  const LinkRates link = {.bytes_per_ns = 1, .latency_ns = kLatency};
  for (int task = 0; task <= ps; ++task) {
    problem.devices.push_back({.task = task, .link_in_task = link, .link_to_tasks = link});
    problem.candidates.push_back({task});
    step.device.push_back(task);
  }
  problem.num_tasks = ps + 1;
  problem.num_kinds = 1;
  std::vector<PlacementProblem::Input> parts;
  for (int p = 0; p < ps; ++p) {
    problem.AddNode(/*group_of_node=*/p + 1, {}, {0});
    problem.output_bytes.push_back(1000);
    parts.push_back({p, p});
  }
  problem.AddNode(/*group_of_node=*/0, parts, {compute_ns});
  return step;
}

TEST(PredictedClusterTest, OneWorkerHasItsOwnTime) {
  const PredictedCluster cluster = PredictCluster(StepOf(1, 5'000), 1);
  // The start message reaches the server, the value arrives at the worker, the worker computes.
  EXPECT_DOUBLE_EQ(cluster.step_ns, kLatency + 1000 + kLatency + 5'000);
  EXPECT_DOUBLE_EQ(cluster.steps_per_second, 1e9 / 8'000);
  ASSERT_EQ(cluster.ps_bytes.size(), 1u);
  EXPECT_DOUBLE_EQ(cluster.ps_bytes[0], 1000);
  EXPECT_NEAR(cluster.worker.compute, 5'000 / 8'000.0, 0.01);
  EXPECT_NEAR(cluster.ps.send, 1'000 / 8'000.0, 0.01);
  EXPECT_EQ(cluster.ps.receive, 0);
}

TEST(PredictedClusterTest, AFewWorkersDoNotDisturbEachOther) {
  const PredictedCluster cluster = PredictCluster(StepOf(1, 5'000), 4);
  EXPECT_NEAR(cluster.step_ns, 8'000, 800);
}

TEST(PredictedClusterTest, ManyWorkersWaitForTheServersLink) {
  const PredictedCluster one = PredictCluster(StepOf(1, 5'000), 40);
  EXPECT_NEAR(one.step_ns, 40 * 1'000, 2'000) << "a value for each worker, one after the other";
  EXPECT_GT(one.ps.send, 0.9);
  EXPECT_LT(one.worker.compute, 0.2);
}

TEST(PredictedClusterTest, MoreServersShareTheBytes) {
  PlacedStep step = StepOf(4, 5'000);
  for (double& bytes : step.problem.output_bytes) bytes = 250;
  const PredictedCluster four = PredictCluster(step, 40);
  const PredictedCluster one = PredictCluster(StepOf(1, 5'000), 40);
  EXPECT_LT(four.step_ns, one.step_ns / 3);
  EXPECT_EQ(four.ps_bytes, (std::vector<double>{250, 250, 250, 250}));
}

TEST(PredictedClusterTest, TheServersComputeForAll) {
  PlacedStep step = StepOf(1, 1'000);
  step.problem.nanos[0] = 3'000;
  const PredictedCluster cluster = PredictCluster(step, 20);
  EXPECT_NEAR(cluster.step_ns, 20 * 3'000, 3'000);
  EXPECT_GT(cluster.ps.compute, 0.9);
}

}  // namespace
}  // namespace penstock
