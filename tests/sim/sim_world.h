// SPDX-License-Identifier: Apache-2.0
//
// SimWorld: a training on a simulated cluster, with the faults of a seed, checked against what the
// runtime promises whatever happens:
//
//   hang        it ends, within a time after the last fault; no step takes longer than it may
//   bits        the variables have the bits of a training without faults
//   errors      the error of a step is Unavailable or Aborted, and names a task
//   checkpoints what was saved is there after a loss of power, and whole
//   replicas    with two processes for each ps, no acknowledged step is lost
//   steps       no step id is used twice
//   leaks       in the end no task has a step, a session or a subscription left
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/fault_point.h"
#include "tests/sim/fault_plan.h"

namespace penstock::simulation {

struct SimRunOptions {
  FaultPlanOptions plan;
  int64_t steps = 40;
  bool faults = true;
  std::vector<std::string> bugs = {};  // names of planted bugs
  bool mishaps = true;
  // The bits that the variables should have; "": not checked.
  std::string expected_weights = "";
};

struct SimRunResult {
  std::vector<std::string> violations;
  std::string log;       // every message
  std::string timeline;  // faults, and what people would see
  std::string weights;
  double simulated_seconds = 0;
  struct Reached {
    int64_t times = 0, fired = 0;
  };
  std::map<std::string, Reached> points;
};

// The hosts of the cluster, which faults may hit.
std::vector<std::string> SimHosts(bool replicas);

// In one thread. After a violation "hang" the process has to end: the rest of the run is left as it
// is. InvalidArgument for a plan, or the name of a bug, that there is not.
StatusOr<SimRunResult> RunSimulation(const SimRunOptions& options);

}  // namespace penstock::simulation
