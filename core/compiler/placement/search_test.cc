// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/search.h"

#include <numeric>

#include "core/compiler/placement/predicted_step.h"
#include "core/compiler/placement/testing/problems.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Calls `check` for random problems with slow and with quick transfers, on two and on three
// devices.
template <class F>
void ForProblems(int seeds, int nodes, F check) {
  for (const double transfer_ns : {1e4, 1e5, 5e5}) {
    for (const int devices : {2, 3}) {
      for (int seed = 0; seed < seeds; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << devices << " devices, "
                                        << transfer_ns << " ns per transfer");
        check(
            RandomProblem(seed, {.nodes = nodes, .devices = devices, .transfer_ns = transfer_ns}));
      }
    }
  }
}

TEST(FindPlacementTest, SmallProblemsAreSolvedAtTheirBest) {
  ForProblems(50, 6, [](const PlacementProblem& problem) {
    const double best = BestOfAllNanos(problem);
    EXPECT_NEAR(FindPlacement(problem).step_ns / best, 1, 1e-9);
  });
}

// The budget is too small to try all placements.
TEST(FindPlacementTest, TheSearchComesNearTheBest) {
  double sum = 0;
  int count = 0;
  ForProblems(100, 7, [&](const PlacementProblem& problem) {
    const double found = FindPlacement(problem, {}, 128 * problem.num_nodes() - 1).step_ns;
    const double ratio = found / BestOfAllNanos(problem);
    EXPECT_LE(ratio, 1.4);
    sum += ratio;
    ++count;
  });
  EXPECT_LE(sum / count, 1.02);
}

TEST(FindPlacementTest, NeverMuchWorseThanHeftOrOneDevice) {
  ForProblems(5, 200, [](const PlacementProblem& problem) {
    const double found = FindPlacement(problem).step_ns;
    EXPECT_LE(found, 1.03 * HeftNanos(problem));
    EXPECT_LE(found, BestSingleDeviceNanos(problem));
    EXPECT_LE(found, RandomPlacementNanos(problem, 1));
    EXPECT_GE(found, LowerBoundNanos(problem));
  });
}

TEST(FindPlacementTest, WhatItPredictsIsWhatItPlaced) {
  const PlacementProblem problem = RandomProblem(7, {.nodes = 60, .devices = 3});
  const FoundPlacement found = FindPlacement(problem);
  std::vector<int> devices;
  for (const FoundPlacement::Group& group : found.groups) devices.push_back(group.device);
  EXPECT_EQ(found.step_ns, PredictStep(problem, devices, UpwardRanks(problem)).end_ns);
}

TEST(FindPlacementTest, TheSameProblemHasTheSameAnswer) {
  const PlacementProblem problem = RandomProblem(3, {.nodes = 100, .devices = 3});
  const FoundPlacement a = FindPlacement(problem), b = FindPlacement(problem);
  for (size_t g = 0; g < a.groups.size(); ++g) EXPECT_EQ(a.groups[g].device, b.groups[g].device);
}

TEST(FindPlacementTest, CandidatesAreKept) {
  PlacementProblem problem = RandomProblem(5, {.nodes = 50, .devices = 3});
  for (int g = 0; g < problem.num_groups(); ++g) {
    if (g % 3 != 0) problem.candidates[g] = {g % 3};
  }
  const FoundPlacement found = FindPlacement(problem);
  for (int g = 0; g < problem.num_groups(); ++g) {
    if (g % 3 != 0) {
      EXPECT_EQ(found.groups[g].device, g % 3);
    }
  }
}

// A group of one quick and one slow node: the first node alone would go to the device on which it
// is quick.
TEST(FindPlacementTest, AGroupIsPlacedByAllItsMembers) {
  PlacementProblem problem = EqualDevices(2, 0, 1e9);
  problem.num_kinds = 2;
  problem.devices[1].kind = 1;
  problem.candidates = {{0, 1}};
  problem.AddNode(0, {}, {100, 10});
  problem.AddNode(0, {}, {100, 1000});
  EXPECT_EQ(FindPlacement(problem, {}, 0).groups[0].device, 0);
}

// Independent nodes on two devices, one with half the speed: two thirds of the work go to the
// faster one.
TEST(FindPlacementTest, ASlowDeviceGetsLessWork) {
  PlacementProblem problem = EqualDevices(2, 0, 1e9);
  problem.num_kinds = 2;
  problem.devices[1].kind = 1;
  for (int node = 0; node < 90; ++node) {
    problem.candidates.push_back({0, 1});
    problem.AddNode(node, {}, {100, 200});
  }
  int on_slow = 0;
  for (const FoundPlacement::Group& group : FindPlacement(problem).groups) on_slow += group.device;
  EXPECT_EQ(on_slow, 30);
}

TEST(FindPlacementTest, AnEarlierPlacementStaysUnlessAnotherIsMuchQuicker) {
  PlacementProblem problem = EqualDevices(2, 0, 1e9);
  problem.num_kinds = 2;
  problem.devices[1].kind = 1;
  problem.candidates = {{0, 1}};
  problem.AddNode(0, {}, {100, 109});
  EXPECT_EQ(FindPlacement(problem).groups[0].device, 0);
  const FoundPlacement kept = FindPlacement(problem, {1});
  EXPECT_EQ(kept.groups[0].device, 1);
  EXPECT_EQ(kept.step_ns, 109);
  EXPECT_TRUE(kept.kept);
  problem.nanos[1] = 111;
  EXPECT_EQ(FindPlacement(problem, {1}).groups[0].device, 0);
  EXPECT_FALSE(FindPlacement(problem, {1}).kept);
  EXPECT_EQ(FindPlacement(problem, {-1}).groups[0].device, 0) << "not a placement";
}

// On a thousand tasks the work is spread over all of them.
TEST(FindPlacementTest, AThousandTasks) {
  PlacementProblem problem = EqualDevices(1000, 1000, 1);
  std::vector<int> anywhere(1000);
  std::iota(anywhere.begin(), anywhere.end(), 0);
  for (int node = 0; node < 2000; ++node) {
    problem.candidates.push_back(anywhere);
    problem.AddNode(node, {}, {1e6});
  }
  EXPECT_LE(FindPlacement(problem).step_ns, 2.01e6);
}

}  // namespace
}  // namespace penstock
