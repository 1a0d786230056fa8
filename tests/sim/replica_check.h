// SPDX-License-Identifier: Apache-2.0
//
// ReplicaCheck: compares the two replicas of one parameter server while the simulation runs.
//
// While no step runs and the follower has acknowledged everything, each variable must have the same
// value in both, and both must have counted the same number of changes since the last such moment.
// Until the next step has ended, the follower must not change, because it may apply only complete
// steps. A follower that becomes the primary must have exactly the variables that it had when its
// primary died. If there are two primaries, the one with the lower epoch must still wait for its
// follower; it must not have continued alone.
//
// Check does not block and changes nothing. Check borrows its arguments only during the call.
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
  // Compares the two processes of a parameter server; either may be null. Returns a text that says
  // what is wrong; "" if nothing is wrong, or if the replicas cannot be compared at this moment.
  std::string Check(SimProcess* one, SimProcess* other);
  // If the global step is a variable of this parameter server, checks that a follower that may take
  // over has a global step of at least `step`. Returns what is wrong, as Check does.
  std::string CheckStep(SimProcess* one, SimProcess* other, int64_t step);

 private:
  // A variable at the last moment at which both replicas were compared. Versions of the two
  // replicas differ, because a follower begins with a copy.
  struct Seen {
    std::weak_ptr<Resource> primary, follower;
    int64_t primary_version = 0, follower_version = 0;
  };
  std::string LookAt(SimProcess& primary, SimProcess& follower);
  std::string Compare(SimProcess& primary, SimProcess& follower);
  std::string CompareDuringStep(SimProcess& primary, SimProcess& follower);
  std::string CheckOrphan(SimProcess& process);

  std::map<std::string, Seen> seen_;  // by the variable's name
  // The primary's counts at the last moment at which the replicas were compared.
  int64_t steps_ended_ = 0;
  uint64_t forced_cuts_ = 0;
  // The versions of the variables of a follower without a primary, by the variable's name.
  std::map<std::string, int64_t> orphan_;
  const SimProcess* orphan_of_ = nullptr;
};

}  // namespace penstock::simulation
