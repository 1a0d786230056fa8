// SPDX-License-Identifier: Apache-2.0
//
// PredictCluster: training by many workers that share parameter servers, predicted from the step of
// one: what `penstock whatif` prints.
//
// Each worker runs steps of its own, one after the other, as between-graph replicas do. The step's
// nodes outside of the master's task are the parameter servers' and use what all workers share:
// their lanes and their links. Several steps of all workers are simulated (predicted_step.h); the
// first ones, in which all workers do the same at the same time, do not count.
#pragma once

#include <vector>

#include "core/compiler/placement/placer.h"

namespace penstock {

struct PredictedCluster {
  // The part of the time that something of the busiest task is in use: 0 to 1.
  struct Load {
    double compute = 0, send = 0, receive = 0;
  };
  double step_ns = 0;           // of one worker
  double steps_per_second = 0;  // of all workers
  Load worker, ps;
  std::vector<double> ps_bytes;  // by parameter server: sent and received, in one worker's step
};

// REQUIRES workers > 0, and a step whose problem has a master's task.
PredictedCluster PredictCluster(const PlacedStep& step, int workers);

}  // namespace penstock
