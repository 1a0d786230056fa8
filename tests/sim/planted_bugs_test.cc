// SPDX-License-Identifier: Apache-2.0
//
// Tests that the simulator detects bugs. For each bug planted at a fault point there is a seed that
// catches it, or a reason why no seed can.
//
// If a change of the code makes a seed miss its bug, find another one:
//   PENSTOCK_FIND_SEEDS=100 bazel-bin/tests/sim/planted_bugs_test
// tries 100 seeds for each bug, and prints the smallest one that catches it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/fault_point.h"
#include "gtest/gtest.h"
#include "tests/sim/run_seeds.h"

namespace penstock::simulation {
namespace {

using Names = std::vector<std::string>;

// A run that catches a bug: the seed, and the faults and hosts from which the seed chooses.
struct PlantedBug {
  const char* bug;
  uint64_t seed;
  bool replicas = false;
  Names kinds = {};  // empty: all
  Names hosts = {};  // empty: all
};

const std::vector<PlantedBug>& AllPlantedBugs() {
  static const auto* const planted = new std::vector<PlantedBug>{
      {.bug = "steps/abort-ignored", .seed = 1},
      {.bug = "steps/subscription-dropped", .seed = 0},
      {.bug = "steps/repeat-accepted", .seed = 0, .kinds = {"repeat"}},
      {.bug = "worker/session-kept", .seed = 0},
      {.bug = "step/parts-not-aborted", .seed = 0},
      {.bug = "step/error-swallowed", .seed = 2},
      {.bug = "step/error-without-task", .seed = 0},
      {.bug = "session/step-ids-reused", .seed = 0, .kinds = {"kill"}},
      {.bug = "health/never-well-again", .seed = 0, .kinds = {"cut", "cut-one-way", "freeze"}},
      {.bug = "checkpoint/index-before-data", .seed = 21, .kinds = {"kill", "power-loss"}},
      {.bug = "checkpoint/index-not-synced", .seed = 0, .kinds = {"power-loss"}},
      {.bug = "checkpoint/data-not-synced", .seed = 0, .kinds = {"power-loss"}},
      {.bug = "checkpoint/directory-not-synced", .seed = 1, .kinds = {"power-loss"}},
      {.bug = "checkpoint/state-not-written", .seed = 0, .kinds = {"kill"}},
      {.bug = "replica/answer-before-follower",
       .seed = 0,
       .replicas = true,
       .kinds = {"kill"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/applied-twice",
       .seed = 0,
       .replicas = true,
       .kinds = {"kill"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/record-lost",
       .seed = 0,
       .replicas = true,
       .kinds = {"kill"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/log-out-of-order",
       .seed = 0,
       .replicas = true,
       .kinds = {"kill"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/half-step-kept",
       .seed = 0,
       .replicas = true,
       .kinds = {"slow"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/held-records-kept",
       .seed = 3,
       .replicas = true,
       .kinds = {"slow-kill"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/not-fenced",
       .seed = 2,
       .replicas = true,
       .kinds = {"cut", "cut-one-way"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "replica/goes-on-unasked",
       .seed = 0,
       .replicas = true,
       .kinds = {"cut", "cut-one-way"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "witness/epoch-for-both",
       .seed = 0,
       .replicas = true,
       .kinds = {"cut", "cut-one-way"},
       .hosts = {"ps-0", "ps-0b"}},
      {.bug = "health/loss-unnoticed",
       .seed = 0,
       .replicas = true,
       .kinds = {"host-down", "freeze"},
       .hosts = {"ps-0", "worker-1"}},
  };
  return *planted;
}

// A bug that no run detects, because another check hides it, or the simulated training cannot show
// it.
struct Hidden {
  const char* bug;
  const char* why;
};
constexpr Hidden kHidden[] = {
    {"replica/missing-push-accepted", "a lost push ends the feed before the next push is sent"},
    {"worker/follower-serves", "masters send sessions only to the replica that says it serves"},
    {"worker/incarnation-ignored", "calls name their session, which a restarted task has not"},
    {"steps/late-tensor-accepted",
     "a step is tried again with the same batch and weights, so a late tensor has the value that "
     "the "
     "new step expects"},
};

SimRunOptions OptionsOf(const PlantedBug& planted, bool with_bug) {
  SimRunOptions options{.plan = {.seed = planted.seed,
                                 .kinds = planted.kinds,
                                 .hosts = planted.hosts,
                                 .replicas = planted.replicas}};
  if (with_bug) options.bugs = {planted.bug};
  return options;
}

// Returns the first violation of the run; "" if there is none.
std::string Violation(SimRunOptions options) {
  static std::string expected[2];
  std::string& weights = expected[options.plan.replicas];
  if (weights.empty()) {
    SimRunOptions plain{.plan = {.replicas = options.plan.replicas}};
    EXPECT_EQ(ExpectWeights(&plain), OkStatus());
    weights = plain.expected_weights;
  }
  options.expected_weights = weights;
  const auto result = RunSeed(options);
  EXPECT_EQ(result.status(), OkStatus());
  return result.ok() && !result->run.violations.empty() ? result->run.violations[0] : "";
}

class PlantedBugsTest : public testing::TestWithParam<PlantedBug> {};

TEST_P(PlantedBugsTest, ItsSeedCatchesIt) {
  const PlantedBug& planted = GetParam();
  if (const char* const tries = std::getenv("PENSTOCK_FIND_SEEDS")) {
    for (uint64_t seed = 0; seed < std::strtoull(tries, nullptr, 10); ++seed) {
      SimRunOptions options = OptionsOf(planted, /*with_bug=*/true);
      options.plan.seed = seed;
      const std::string found = Violation(options);
      if (found.empty()) continue;
      options.bugs.clear();
      if (!Violation(options).empty()) continue;  // the run fails without the bug, too
      std::printf("FOUND %s seed %d: %s\n", planted.bug, static_cast<int>(seed), found.c_str());
      return;
    }
    std::printf("FOUND %s no seed\n", planted.bug);
    return;
  }
  EXPECT_NE(Violation(OptionsOf(planted, /*with_bug=*/true)), "") << planted.bug;
  EXPECT_EQ(Violation(OptionsOf(planted, /*with_bug=*/false)), "") << "without the bug";
}

std::string NameOf(const testing::TestParamInfo<PlantedBug>& info) {
  std::string name = info.param.bug;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedBugsTest, testing::ValuesIn(AllPlantedBugs()), NameOf);

TEST(PlantedBugs, EachBugIsListed) {
  Names listed, points;
  for (const PlantedBug& planted : AllPlantedBugs()) listed.emplace_back(planted.bug);
  for (const Hidden& hidden : kHidden) listed.emplace_back(hidden.bug);
  for (const FaultPoint* point : FaultPoint::All()) {
    if (point->kind() == FaultPoint::kBug) points.emplace_back(point->name());
  }
  std::sort(listed.begin(), listed.end());
  std::sort(points.begin(), points.end());
  EXPECT_EQ(listed, points);
}

}  // namespace
}  // namespace penstock::simulation
