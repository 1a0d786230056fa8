// SPDX-License-Identifier: Apache-2.0
//
// Makes placement problems, random or by hand, and solves them in other ways, for comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compiler/placement/problem.h"

namespace penstock {

struct ProblemOptions {
  int nodes = 8;
  int devices = 2;      // each is a task that has one CPU with one lane
  int most_inputs = 3;  // per node
  // The average time of a node on device 0. Another device takes 1 to 3 times as long, and each
  // time varies by a quarter.
  double node_ns = 100'000;
  double transfer_ns = 100'000;  // average time to send an output, without the latency
  double latency_ns = 10'000;
};
// Each node is a group of its own that may run on any device.
PlacementProblem RandomProblem(uint64_t seed, const ProblemOptions& options);
// Returns a problem without nodes. Its `devices` devices are equal tasks, each with one CPU that
// has one lane.
PlacementProblem EqualDevices(int devices, double latency_ns, double bytes_per_ns);

// Return the time of the predicted step under a placement:
// The time under the best of all placements.
double BestOfAllNanos(const PlacementProblem& problem);
// Returns the time under the placement found by HEFT, which fills gaps between earlier nodes.
double HeftNanos(const PlacementProblem& problem);
double BestSingleDeviceNanos(const PlacementProblem& problem);
double RandomPlacementNanos(const PlacementProblem& problem, uint64_t seed);

}  // namespace penstock
