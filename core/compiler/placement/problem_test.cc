// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/problem.h"

#include "core/compiler/placement/testing/problems.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// a ── b ── d     each takes 100 ns; b's and c's outputs are 50 bytes, 1 byte/ns, 10 ns latency
//  └── c ──┘
PlacementProblem Diamond(std::vector<int> candidates) {
  PlacementProblem problem = EqualDevices(2, 10, 1);
  problem.output_bytes = {50, 50, 50, 50};
  const std::vector<std::vector<PlacementProblem::Input>> inputs = {
      {}, {{0, 0}}, {{0, 0}}, {{1, 1}, {2, 2}}};
  for (int node = 0; node < 4; ++node) {
    problem.candidates.push_back(candidates);
    problem.AddNode(node, inputs[node], {100});
  }
  return problem;
}

TEST(PlacementProblemTest, DeviceTimesReplaceTheTimeOfTheKind) {
  PlacementProblem problem = EqualDevices(3, 10, 1);
  problem.candidates = {{0, 1, 2}};
  problem.AddNode(0, {}, {100}, {{1, 300}});
  EXPECT_EQ(problem.Nanos(0, 0), 100);
  EXPECT_EQ(problem.Nanos(0, 1), 300);
  EXPECT_EQ(problem.Nanos(0, 2), 100);
}

TEST(PlacementProblemTest, ALinkIsAsGoodAsItsWorseEnd) {
  PlacementProblem problem = EqualDevices(2, 10, 1);
  problem.devices[1].link_to_tasks = {.bytes_per_ns = 0.5, .latency_ns = 70};
  EXPECT_EQ(problem.Link(0, 1).bytes_per_ns, 0.5);
  EXPECT_EQ(problem.Link(1, 0).latency_ns, 70);
  problem.devices[1].task = 0;
  EXPECT_EQ(problem.Link(0, 1).latency_ns, 10) << "within a task";
}

TEST(PlacementProblemTest, RanksAreTheWayToTheEnd) {
  EXPECT_EQ(UpwardRanks(Diamond({0})), (std::vector<double>{300, 200, 200, 100}));
  // On average, half of the transfers between two devices happen: (10 + 50) / 2 each.
  EXPECT_EQ(UpwardRanks(Diamond({0, 1})), (std::vector<double>{360, 230, 230, 100}));
}

TEST(PlacementProblemTest, NodesOfAGroupSendNothingToEachOther) {
  PlacementProblem problem = Diamond({0, 1});
  problem.group = {0, 0, 0, 0};
  EXPECT_EQ(UpwardRanks(problem), (std::vector<double>{300, 200, 200, 100}));
}

TEST(PlacementProblemTest, TheBoundIsTheLongestPathOrTheWorkPerLane) {
  EXPECT_EQ(LowerBoundNanos(Diamond({0, 1})), 300);
  PlacementProblem wide = EqualDevices(2, 10, 1);
  for (int node = 0; node < 10; ++node) {
    wide.candidates.push_back({0, 1});
    wide.AddNode(node, {}, {100});
  }
  EXPECT_EQ(LowerBoundNanos(wide), 500);
  wide.devices[0].lanes = 4;
  EXPECT_EQ(LowerBoundNanos(wide), 200);
}

}  // namespace
}  // namespace penstock
