// SPDX-License-Identifier: Apache-2.0
//
// FaultPlan: the faults of one simulated training, as they follow from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock::simulation {

struct Fault {
  enum Kind {
    kKill,        // of `host`: a task's process, or the client
    kHostDown,    // the same with its host, so that nobody is told
    kFreeze,      // of `host`
    kCut,         // `host` and `other` do not reach each other
    kCutOneWay,   // what `host` sends to `other` does not arrive
    kLoss,        // messages are lost, and their connections with them
    kRepeat,      // requests arrive twice
    kSlow,        // messages take long
    kDiskErrors,  // operations on files fail, and writes are torn
    kPowerLoss,   // everywhere: what was not synced is lost
    kBitFlip,     // in a file of a checkpoint
    kClockJump,   // of wall clocks
  };
  Kind kind = kKill;
  int64_t after_ms = 0;  // since the fault before
  std::string host, other;
  int64_t lasts_ms = 0;  // until it is over, or the process is started again
  uint64_t choice = 0;   // what else there is to be decided

  // "kill ps-1 for 120 ms".
  std::string ToString() const;
};

const std::vector<std::string>& FaultNames();

struct FaultPlanOptions {
  uint64_t seed = 0;
  // Names of kinds; empty: all.
  std::vector<std::string> kinds = {};
  // The hosts that may be lost. With `replicas` faults come one at a time, and only such as two
  // replicas survive.
  std::vector<std::string> hosts = {};
  bool replicas = false;
  // The indices of the faults that happen; empty: all.
  std::vector<int> only = {};
};

// InvalidArgument names a kind that there is not. Faults that do not happen leave their time
// behind, so that the others come when they did.
StatusOr<std::vector<Fault>> MakeFaultPlan(const FaultPlanOptions& options);

}  // namespace penstock::simulation
