// SPDX-License-Identifier: Apache-2.0
//
// Runs simulations in child processes, so that a crash is reported like any other violation, and
// threads that hang end with their process.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/sim_world.h"

namespace penstock::simulation {

// The result of RunSimulation in a child process. A crash is a violation, and so is a run of more
// than `limit_seconds` of real time. The log is empty unless `want_log`; its hash is always set.
struct SimSeedResult {
  SimRunResult run;
  uint64_t log_hash = 0;
  double real_seconds = 0;
};
StatusOr<SimSeedResult> RunSeed(const SimRunOptions& options, bool want_log = false,
                                int limit_seconds = 60);

// Makes a run without faults, and sets options->expected_weights to its weights.
Status ExpectWeights(SimRunOptions* options);

// Shrinks the plan of a failing run: drops faults one by one as long as the run still fails.
// Returns the indices of the remaining faults, and sets `*runs` to the number of runs that it made.
StatusOr<std::vector<int>> ShrinkPlan(const SimRunOptions& options, int* runs);

// Returns the number of seeds that a test of `parts` parts runs: PENSTOCK_SIM_SEEDS, but at least
// one for each part; `usual` if the variable is not set.
int NumSeeds(int usual, int parts);

}  // namespace penstock::simulation
