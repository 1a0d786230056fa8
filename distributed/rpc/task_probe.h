// SPDX-License-Identifier: Apache-2.0
//
// ProbeTasks: probes the addresses of tasks, for tools outside the cluster: whether the name
// resolves, whether a process listens, and which task it says it is.
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
    kRefused,      // the host answers, but nothing listens at the port
    kUnreachable,  // nothing answered an attempt to connect
    kSilent,       // the connection was accepted, but no answer came in time
    kForeign,      // the process that listens is not a task of Penstock
    kMismatch,     // its security settings differ from this process's, or it refuses the token
  };
  Outcome outcome = Outcome::kUnreachable;
  std::string detail;  // error text from the system or gRPC; "" for kServes

  // The remaining fields are the task's answer.
  std::string name;  // "/job:ps/replica:0/task:0"
  uint64_t incarnation = 0;
  std::string version;
  int protocol_version = 0;
  std::string protocol;  // the transport it uses
  ClusterSpec cluster;   // the cluster that it was started with
  // Says how the programs that use the task's variables differ: TaskReport.program_difference.
  std::vector<std::string> program_differences = {};
  double round_trip_ms = 0;
  double clock_ahead_s = 0;  // of this host's wall clock; the error is at most the round trip
};

// Probes all addresses ("host:port") at the same time. Takes at most about `timeout_ms` of the real
// clock, even if `env` has a simulated clock, because a resolver blocks in the operating system.
// `env` measures the round trips, and its wall clock is compared with those of the tasks.
std::vector<TaskProbe> ProbeTasks(const std::vector<std::string>& addresses, int64_t timeout_ms,
                                  Env& env = Env::Real());

}  // namespace penstock
