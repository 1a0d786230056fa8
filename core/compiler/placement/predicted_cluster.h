// SPDX-License-Identifier: Apache-2.0
//
// PredictCluster: predicts the speed of a training with many workers that share parameter servers,
// from one worker's step. `penstock whatif` prints the result.
//
// In the predicted cluster, each worker runs its own steps, one after the other (between-graph
// replication). The step's nodes outside of the master's task run on the parameter servers; all
// workers share the servers' lanes and links. PredictCluster simulates several steps of all workers
// (predicted_step.h), and ignores the first ones, in which all workers do the same at the same
// time.
#pragma once

#include <vector>

#include "core/compiler/placement/placer.h"

namespace penstock {

struct PredictedCluster {
  // For each kind of resource, the fraction of the time (0 to 1) in which the busiest task uses it.
  struct Load {
    double compute = 0, send = 0, receive = 0;
  };
  double step_ns = 0;           // duration of one worker's step
  double steps_per_second = 0;  // the rate of all workers together
  Load worker, ps;
  std::vector<double>
      ps_bytes;  // by parameter server: bytes sent and received per step of one worker
};

// REQUIRES: workers > 0, and master_task of the step's PlacementProblem is set.
PredictedCluster PredictCluster(const PlacedStep& step, int workers);

}  // namespace penstock
