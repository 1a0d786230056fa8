// SPDX-License-Identifier: Apache-2.0
//
// ProbeTasks: what is found at the addresses of tasks, for tools that look at a cluster from
// outside: whether the name resolves, whether something listens, and what it says that it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "distributed/cluster/cluster_spec.h"

namespace penstock {

struct TaskProbe {
  enum class Outcome {
    kServes,       // a task of Penstock has answered
    kUnresolved,   // the host's name has no address
    kRefused,      // the host answers; nothing listens at the port
    kUnreachable,  // nothing answered an attempt to connect
    kSilent,       // the connection was accepted, and no answer came in time
    kForeign,      // what listens is not a task of Penstock
    kMisfit,       // it is secured in another way than this process, or refuses its token
  };
  Outcome outcome = Outcome::kUnreachable;
  std::string detail;  // of the system or of gRPC; "" for kServes

  // The rest is what a task says of itself.
  std::string name;  // "/job:ps/replica:0/task:0"
  uint64_t incarnation = 0;
  std::string version;
  int protocol_version = 0;
  std::string protocol;  // that tensors travel by
  ClusterSpec cluster;   // that it was started with
  double round_trip_ms = 0;
  double clock_ahead_s = 0;  // of this host's wall clock, give or take the round trip
};

// Asks all addresses ("host:port") at the same time; takes at most about `timeout_ms`.
std::vector<TaskProbe> ProbeTasks(const std::vector<std::string>& addresses, int64_t timeout_ms,
                                  Env& env = Env::Real());

}  // namespace penstock
