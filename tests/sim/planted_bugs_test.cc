// SPDX-License-Identifier: Apache-2.0
//
// Tests that the simulator detects bugs: for each bug planted at a fault point, one of the first
// kSeedsMax seeds must fail. Prints the seed that caught each bug.
#include <cstdio>
#include <set>
#include <string>

#include "core/base/fault_point.h"
#include "gtest/gtest.h"
#include "tests/sim/run_seeds.h"

namespace penstock::simulation {
namespace {

constexpr int kSeedsMax = 60;
// The number of test cases that the bugs are divided into.
constexpr int kParts = 4;

// Bugs that no run detects, and why.
const std::set<std::string>& NotCaught() {
  static const auto* const names = new std::set<std::string>{};
  return *names;
}

struct Caught {
  int seed = -1;
  std::string how;
};

// Alternates between seeds with and without replicas, because some bugs show only in one of the
// two.
Caught Catch(const std::string& bug, SimRunOptions (&options)[2]) {
  for (int seed = 0; seed < kSeedsMax; ++seed) {
    SimRunOptions& run = options[seed % 2];
    run.plan.seed = static_cast<uint64_t>(seed / 2);
    run.bugs = {bug};
    const auto result = RunSeed(run);
    EXPECT_EQ(result.status(), OkStatus());
    if (result.ok() && !result->run.violations.empty()) return {seed, result->run.violations[0]};
  }
  return {};
}

class PlantedBugsTest : public testing::TestWithParam<int> {};

TEST_P(PlantedBugsTest, ASeedCatchesEach) {
  SimRunOptions options[2];
  for (const bool replicas : {false, true}) {
    options[replicas].plan.replicas = replicas;
    ASSERT_EQ(ExpectWeights(&options[replicas]), OkStatus());
  }
  int number = 0;
  for (const FaultPoint* point : FaultPoint::All()) {
    if (point->kind() != FaultPoint::kBug || number++ % kParts != GetParam()) continue;
    const Caught caught = Catch(point->name(), options);
    std::printf("%-34s %s\n", point->name(),
                caught.seed < 0
                    ? "NOT CAUGHT"
                    : StrCat("run ", caught.seed, ": ", caught.how.substr(0, 120)).c_str());
    EXPECT_EQ(caught.seed < 0, NotCaught().count(point->name()) != 0) << point->what();
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, PlantedBugsTest, testing::Range(0, kParts));

}  // namespace
}  // namespace penstock::simulation
