// SPDX-License-Identifier: Apache-2.0
//
// PredictStep: simulates a step with a given placement: when and on which lane each node runs, and
// when each transfer runs. The placer compares such predictions, and `penstock place` draws them.
//
// In the simulation, a node is ready when its inputs are on its device; a free lane takes the ready
// node of the largest rank. An output is sent once to each device that reads it, as soon as it has
// been computed. Each task has one link for sending and one for receiving. A link carries one
// transfer at a time, in order of their start times. Copies between the devices of a task also run
// one at a time.
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
    int node = 0, output = -1;  // the same meaning as in PlacementProblem::Input
    int from = 0, to = 0;       // devices
    double start_ns = 0, end_ns = 0;
  };
  double end_ns = 0;
  std::vector<Run> runs;            // by node
  std::vector<Transfer> transfers;  // in order of their start times
};

// Simulates one step. `device` is indexed by group; `ranks` by node: the highest rank runs first.
PredictedStep PredictStep(const PlacementProblem& problem, absl::Span<const int> device,
                          absl::Span<const double> ranks);

}  // namespace penstock
