// SPDX-License-Identifier: Apache-2.0
//
// FindPlacement: chooses a device for each group such that the predicted step ends early.
//
// Greedy by finish time in order of upward rank (white paper 3.2.1; HEFT), a group as a whole by
// the sum of its members; beside it each device alone; then single groups of the best of these are
// moved while a prediction of the whole step says that it ends sooner. A few nodes: all placements
// are compared. Near-linear in nodes.
#pragma once

#include <vector>

#include "core/compiler/placement/problem.h"

namespace penstock {

struct FoundPlacement {
  struct Candidate {
    int device = 0;
    double end_ns = 0;  // of the group, were it to go there, when the greedy search came to it
  };
  struct Group {
    int device = 0;
    bool moved = false;  // not where the greedy search would have put it: the step ends sooner
    std::vector<Candidate> candidates;
  };
  std::vector<Group> groups;
  double step_ns = 0;  // predicted; 0 where no group has a choice
  bool kept = false;   // all groups are where they were before
};

// How many simulated node executions the search may spend after the greedy one: small graphs are
// searched to the end or nearly so, large ones are not searched at all.
inline constexpr int kSearchBudget = 200'000;

// `before`: the device of each group in an earlier placement, -1 where it had none; may be empty.
// A placement that is complete stays as it is unless what was found is a tenth quicker. Where no
// group has a choice, the nodes of the problem do not count and may be left out.
FoundPlacement FindPlacement(const PlacementProblem& problem, const std::vector<int>& before = {},
                             int budget = kSearchBudget);

}  // namespace penstock
