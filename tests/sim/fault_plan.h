// SPDX-License-Identifier: Apache-2.0
//
// Derives the faults of one simulated training from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock::simulation {

struct Fault {
  enum Kind {
    kKill,        // kills the process of `host`: a task, or the client
    kHostDown,    // kills the process and its host, so its peers get no notice
    kFreeze,      // stops the process of `host` for a time
    kCut,         // `host` and `other` cannot reach each other
    kCutOneWay,   // messages from `host` to `other` are lost
    kLoss,        // messages are lost, and their connections break
    kRepeat,      // some requests arrive twice
    kSlow,        // messages are delayed
    kDiskErrors,  // operations on files fail, and writes are torn
    kPowerLoss,   // all hosts lose power; data that were not synced are lost
    kBitFlip,     // flips a bit in a file of a checkpoint
    kClockJump,   // wall clocks jump
    kSlowKill,    // kills while messages are delayed, so that the kill probably comes in the middle
                  // of a step
  };
  Kind kind = kKill;
  int64_t after_ms = 0;  // time since the previous fault
  std::string host, other;
  int64_t lasts_ms = 0;  // time until the fault is over, or the process is restarted
  uint64_t choice = 0;   // random bits for further choices

  // Returns a text such as "kill ps-1 for 120 ms".
  std::string ToString() const;
};

const std::vector<std::string>& FaultNames();

struct FaultPlanOptions {
  uint64_t seed = 0;
  // The names of the kinds of faults to use; empty: all.
  std::vector<std::string> kinds = {};
  // The hosts that may be lost; empty: RunSimulation uses all hosts of the cluster.
  std::vector<std::string> hosts = {};
  // If true, faults occur one at a time, and only faults that two replicas survive.
  bool replicas = false;
  // The indices of the faults to keep; empty: all.
  std::vector<int> only = {};
};

// Returns the plan. InvalidArgument names an unknown kind. If `only` leaves out a fault, its time
// is added to the next fault, so that the other faults occur at the same times as before.
StatusOr<std::vector<Fault>> MakeFaultPlan(const FaultPlanOptions& options);

}  // namespace penstock::simulation
