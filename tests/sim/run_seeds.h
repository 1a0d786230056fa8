// SPDX-License-Identifier: Apache-2.0
//
// Runs simulations in child processes, so that a crash is a finding like any other, and what a run
// that hangs leaves behind goes with its process.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/sim_world.h"

namespace penstock::simulation {

// As RunSimulation, in a child. A crash, or more than `limit_seconds` of real time, is a violation.
// The log is left out unless `want_log`; its hash is always there.
struct SimSeedResult {
  SimRunResult run;
  uint64_t log_hash = 0;
  double real_seconds = 0;
};
StatusOr<SimSeedResult> RunSeed(const SimRunOptions& options, bool want_log = false,
                                int limit_seconds = 60);

// Fills in `expected_weights` from a run without faults.
Status ExpectWeights(SimRunOptions* options);

// Leaves out faults of a run that fails, one after the other, as long as it still does. Returns the
// indices of those that are left.
StatusOr<std::vector<int>> ShrinkPlan(const SimRunOptions& options, int* runs);

}  // namespace penstock::simulation
