// SPDX-License-Identifier: Apache-2.0
//
// Compares placements of realistic steps with the placements of other methods. Prints the table of
// README.md.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/compiler/placement/predicted_step.h"
#include "core/compiler/placement/search.h"
#include "core/compiler/placement/testing/problems.h"
#include "core/compiler/placement/testing/realistic.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

double NanosByHand(const RealisticProblem& made) {
  return PredictStep(made.problem, made.by_hand, UpwardRanks(made.problem)).end_ns;
}

double BestRandomNanos(const PlacementProblem& problem) {
  double best = RandomPlacementNanos(problem, 0);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    best = std::min(best, RandomPlacementNanos(problem, seed));
  }
  return best;
}

TEST(PlacementQualityTest, RealisticSteps) {
  std::printf("%-14s %7s | %8s %8s %8s %8s %8s %8s (ms)\n", "step", "devices", "found", "HEFT",
              "one", "by hand", "random", "bound");
  for (const int devices : {2, 4}) {
    for (const RealisticProblem& made :
         {StackedLstm(devices), WideAndDeep(devices), Convnet(devices), Inception(devices)}) {
      SCOPED_TRACE(testing::Message() << made.name << " on " << devices);
      const double found = FindPlacement(made.problem).step_ns;
      const double heft = HeftNanos(made.problem), one = BestSingleDeviceNanos(made.problem);
      const double hand = NanosByHand(made), random = BestRandomNanos(made.problem);
      const double bound = LowerBoundNanos(made.problem);
      std::printf("%-14s %7d | %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n", made.name.c_str(), devices,
                  found / 1e6, heft / 1e6, one / 1e6, hand / 1e6, random / 1e6, bound / 1e6);
      EXPECT_LE(found, 1.03 * heft);
      EXPECT_LE(found, one);
      EXPECT_LE(found, random);
      EXPECT_LE(found, 1.1 * hand);
      EXPECT_LE(found, 1.1 * bound);
      EXPECT_GE(found, 0.999 * bound);
    }
  }
}

}  // namespace
}  // namespace penstock
