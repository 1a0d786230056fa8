// SPDX-License-Identifier: Apache-2.0
//
// FindPlacement: chooses a device for each group so that the predicted step ends early.
//
// The search begins with a greedy placement by finish time, in order of upward rank (white paper
// 3.2.1; HEFT). It places a group as a unit, with the sum of its members' times. It also tries to
// use each device alone. In the best of these placements it then moves single groups as long as the
// predicted step ends sooner, and repeats this from random changes of the result. With few nodes it
// compares all placements. The time is almost linear in the number of nodes.
#pragma once

#include <vector>

#include "core/compiler/placement/problem.h"

namespace penstock {

struct FoundPlacement {
  struct Candidate {
    int device = 0;
    double end_ns = 0;  // if the greedy search placed the group there
  };
  struct Group {
    int device = 0;
    // A later search moved the group there, because the predicted step is shorter.
    bool moved = false;
    std::vector<Candidate> candidates;
  };
  std::vector<Group> groups;
  double step_ns = 0;  // predicted; 0 if no group has a choice
  bool kept = false;   // all groups have their previous devices
};

// How many simulated node executions the search may use after the greedy search. Small graphs are
// searched exhaustively or nearly so, large ones not at all.
inline constexpr int kSearchBudget = 200'000;

// `before`: the device of each group in an earlier placement, -1 if it had none; may be empty. A
// complete earlier placement is kept unless the new one is a tenth quicker. If no group has a
// choice, the problem need not have any nodes.
FoundPlacement FindPlacement(const PlacementProblem& problem, const std::vector<int>& before = {},
                             int budget = kSearchBudget);

}  // namespace penstock
