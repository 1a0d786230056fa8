// SPDX-License-Identifier: Apache-2.0
//
// FindPlacement: chooses a device for each group so that the predicted step ends early.
//
// The search begins with a greedy placement by finish time, in order of upward rank (TensorFlow's
// white paper, 3.2.1; HEFT). It places a group as a unit, with the sum of its members' times. It
// also tries placements that put all groups on one device. From the best of these placements, it
// moves single groups while that makes the predicted step end sooner, and repeats this after random
// changes of the result. With few nodes it compares all placements. The time is almost linear in
// the number of nodes.
#pragma once

#include <vector>

#include "core/compiler/placement/problem.h"

namespace penstock {

struct FoundPlacement {
  struct Candidate {
    int device = 0;
    double end_ns = 0;  // when the group would end there, by the greedy search
  };
  struct Group {
    int device = 0;
    // A later search moved the group there, because the predicted step is shorter.
    bool moved = false;
    std::vector<Candidate> candidates;
  };
  std::vector<Group> groups;
  double step_ns = 0;  // predicted time of the step; 0 if no group has a choice
  bool kept = false;   // true if all groups have their devices of `before`
};

// How many node executions the search may simulate after the greedy placement. For small graphs
// this allows to compare all or nearly all placements; for large ones it allows no search.
inline constexpr int kSearchBudget = 200'000;

// Chooses a device for each group. `before` has the group's device in an earlier placement, -1 if
// it had none; it may be empty. If it is complete, FindPlacement keeps it unless the predicted step
// of the new placement is a tenth faster. If no group has a choice, the problem need not have
// nodes.
FoundPlacement FindPlacement(const PlacementProblem& problem, const std::vector<int>& before = {},
                             int budget = kSearchBudget);

}  // namespace penstock
