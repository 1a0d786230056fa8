// SPDX-License-Identifier: Apache-2.0
//
// Runs a training on a simulated cluster with the faults of a seed, and checks the guarantees that
// the runtime gives whatever the faults are:
//
//   hang        the training ends within a limit after the last fault; no step exceeds its limit
//   bits        the variables have the same bits as in a training without faults
//   errors      the error of a step is Unavailable or Aborted, and names a task
//   checkpoints a saved checkpoint exists and is complete, also after a loss of power
//   replicas    with two processes for each ps, no acknowledged step is lost, and the follower has
//               the changes of all steps that have ended (replica_check.h)
//   steps       no step id is used twice
//   leaks       at the end no task has a step, a session or a subscription
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
  std::vector<std::string> bugs = {};  // names of planted bugs to enable
  bool mishaps = true;
  // The expected SimRunResult::weights, bit for bit; "": not checked.
  std::string expected_weights = "";
};

struct SimRunResult {
  std::vector<std::string> violations;
  std::string log;       // a line for every message
  std::string timeline;  // the faults, and the messages for people
  std::string weights;
  double simulated_seconds = 0;
  struct Reached {
    int64_t times = 0, fired = 0;
  };
  std::map<std::string, Reached> points;
};

// Returns the hosts of the cluster, all of which may have faults.
std::vector<std::string> SimHosts(bool replicas);

// Runs the simulation in one thread. After a violation the process must exit, because the run is
// not cleaned up then. InvalidArgument for an invalid plan or an unknown bug.
StatusOr<SimRunResult> RunSimulation(const SimRunOptions& options);

}  // namespace penstock::simulation
