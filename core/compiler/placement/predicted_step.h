// SPDX-License-Identifier: Apache-2.0
//
// PredictStep: a step simulated under a placement: which node runs when on which lane, and which
// transfers go over which link. What the placer compares, and what `penstock place` draws.
//
// The simulation: a node is ready when its inputs are on its device; a free lane takes the ready
// node of the largest rank. An output goes once to each device that reads it, as soon as it is
// there. Each task sends over one link and receives over one link, one transfer at a time, in
// order of their beginning; so do copies between the devices of a task.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/compiler/placement/problem.h"

namespace penstock {

struct PredictedStep {
  struct Run {
    int device = 0, lane = 0;
    double start_ns = 0, end_ns = 0;
  };
  struct Transfer {
    int node = 0, output = -1;  // as in PlacementProblem::Input
    int from = 0, to = 0;       // devices
    double start_ns = 0, end_ns = 0;
  };
  double end_ns = 0;
  std::vector<Run> runs;            // by node
  std::vector<Transfer> transfers;  // in order of their beginning
};

// `device` by group; `ranks` by node: who goes first.
PredictedStep PredictStep(const PlacementProblem& problem, absl::Span<const int> device,
                          absl::Span<const double> ranks);

}  // namespace penstock
