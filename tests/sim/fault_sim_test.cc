// SPDX-License-Identifier: Apache-2.0
//
// Runs trainings on a simulated cluster with the faults of 200 seeds; for a nightly run set
// PENSTOCK_SIM_SEEDS=10000. tools/sim --seed=N repeats a failure and shows what happened.
#include <string>

#include "gtest/gtest.h"
#include "tests/sim/run_seeds.h"

namespace penstock::simulation {
namespace {

constexpr int kUsualSeeds = 200, kParts = 4;

SimRunOptions OptionsOf(bool replicas) {
  SimRunOptions options{.plan = {.replicas = replicas}};
  EXPECT_EQ(ExpectWeights(&options), OkStatus());
  EXPECT_NE(options.expected_weights, "");
  return options;
}

class FaultSimTest : public testing::TestWithParam<int> {};

TEST_P(FaultSimTest, PromisesHoldWhateverHappens) {
  SimRunOptions options[] = {OptionsOf(false), OptionsOf(true)};
  const int seeds = NumSeeds(kUsualSeeds, kParts);
  double simulated = 0, real = 0;
  int faults = 0;
  for (int seed = GetParam(); seed < seeds; seed += kParts) {
    // Every third seed uses replicas, as in tools/sim.
    SimRunOptions& run = options[seed % 3 == 2 ? 1 : 0];
    run.plan.seed = static_cast<uint64_t>(seed);
    const auto result = RunSeed(run);
    ASSERT_EQ(result.status(), OkStatus());
    for (const std::string& violation : result->run.violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation << "\n" << result->run.timeline;
    }
    simulated += result->run.simulated_seconds;
    real += result->real_seconds;
    for (size_t at = 0; (at = result->run.timeline.find("FAULT:", at)) != std::string::npos; ++at) {
      ++faults;
    }
  }
  std::printf("%.0f s simulated in %.1f s, %d faults\n", simulated, real, faults);
  EXPECT_GT(faults, seeds / kParts) << "hardly anything happened";
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultSimTest, testing::Range(0, kParts));

// The gradients of each ps's variables depend on all variables, so a step that is applied on one ps
// only would show in the result.
TEST(FaultSimTest, ADeterministicTrainingEndsWithTheSameBits) {
  SimRunOptions options;
  options.deterministic = true;
  ASSERT_EQ(ExpectWeights(&options), OkStatus());
  const int seeds = NumSeeds(kUsualSeeds, kParts) / kParts;
  for (int seed = 0; seed < seeds; ++seed) {
    options.plan.seed = static_cast<uint64_t>(seed);
    const auto result = RunSeed(options);
    ASSERT_EQ(result.status(), OkStatus());
    for (const std::string& violation : result->run.violations) {
      ADD_FAILURE() << "seed " << seed << ": " << violation << "\n" << result->run.timeline;
    }
  }
}

TEST(FaultSimTest, ASeedRepeatsItself) {
  for (const bool replicas : {false, true}) {
    SimRunOptions options{.plan = {.replicas = replicas}};
    for (options.plan.seed = 1; options.plan.seed <= 5; ++options.plan.seed) {
      const auto first = RunSeed(options, /*want_log=*/true), again = RunSeed(options, true);
      ASSERT_EQ(first.status(), OkStatus());
      ASSERT_EQ(again.status(), OkStatus());
      EXPECT_NE(first->run.log, "");
      EXPECT_EQ(first->run.log, again->run.log) << "seed " << options.plan.seed;
      EXPECT_EQ(first->run.timeline, again->run.timeline);
    }
  }
}

TEST(FaultSimTest, MistakesInOptionsAreErrors) {
  EXPECT_EQ(RunSeed({.plan = {.kinds = {"flood"}}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RunSeed({.bugs = {"no/such-bug"}}).status().code(), StatusCode::kInvalidArgument);
  SimRunOptions options{.plan = {.replicas = true}};
  options.deterministic = true;
  EXPECT_EQ(RunSeed(options).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::simulation
