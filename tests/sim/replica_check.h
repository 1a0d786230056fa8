// SPDX-License-Identifier: Apache-2.0
//
// ReplicaCheck: compares the two replicas of one parameter server while the simulation runs.
//
// While no step runs and the follower has acknowledged everything, each variable must have the same
// value in both, and both must have counted the same number of changes since the last such moment.
//
// Look does not block and changes nothing. All arguments are borrowed during the call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/op/variable.h"
#include "tests/sim/sim_process.h"

namespace penstock::simulation {

class ReplicaCheck {
 public:
  // Looks at the two processes of a parameter server, of which either may be null. Returns what is
  // wrong; "" if nothing is, or if this is not a moment to compare.
  std::string Look(SimProcess* one, SimProcess* other);

 private:
  // A variable at the last moment at which both replicas were compared. Versions of the two differ,
  // because a follower begins with a copy.
  struct Seen {
    std::weak_ptr<Resource> primary, follower;
    int64_t primary_version = 0, follower_version = 0;
  };
  std::string LookAt(SimProcess& primary, SimProcess& follower);
  std::string Compare(SimProcess& primary, SimProcess& follower);

  std::map<std::string, Seen> seen_;  // by the variable's name
};

}  // namespace penstock::simulation
