// SPDX-License-Identifier: Apache-2.0
//
// Placement problems made at random or by hand, and other ways to solve them, to compare with.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compiler/placement/problem.h"

namespace penstock {

struct ProblemOptions {
  int nodes = 8;
  int devices = 2;               // each a task with one CPU of one lane
  int most_inputs = 3;           // per node
  double node_ns = 100'000;      // on average; 1 to 10 times as long on the slowest device
  double transfer_ns = 100'000;  // of an output, on average, without the latency
  double latency_ns = 10'000;
};
// Each node is a group of its own that may go anywhere.
PlacementProblem RandomProblem(uint64_t seed, const ProblemOptions& options);
// `devices` as above, all alike, and no nodes.
PlacementProblem EqualDevices(int devices, double latency_ns, double bytes_per_ns);

// Predicted steps under a placement by
double BestOfAllNanos(const PlacementProblem& problem);  // trying all of them
double HeftNanos(const PlacementProblem& problem);       // HEFT, which fills gaps
double BestSingleDeviceNanos(const PlacementProblem& problem);
double RandomPlacementNanos(const PlacementProblem& problem, uint64_t seed);

}  // namespace penstock
