// SPDX-License-Identifier: Apache-2.0
//
// Asks a cluster for its reports, costs, traces and transports, from any process: for commands such
// as `penstock status` and `penstock trace`, and for clients.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/status.h"
#include "distributed/insight/cluster_trace.h"
#include "proto/penstock/cost.pb.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Asks the task at `target`, "grpc://host:port" or "host:port", for the reports of all tasks of
// its cluster. Waits up to `timeout_ms` for the other tasks, and one second more for this one.
// InvalidArgument if `target` is malformed, Unavailable or DeadlineExceeded if the task does not
// answer, Unauthenticated if its TLS settings or tokens do not fit this process's, Unimplemented
// if another kind of server answers. The text names the task.
StatusOr<wire::ClusterReport> AskCluster(const std::string& target, int64_t timeout_ms = 1'500);

// Asks the tasks that the asked task could not reach (at most 16 of them) for their reports, from
// this process, for up to `timeout_ms`. A report replaces the task's error, which becomes
// ClusterTask.unreached_by_asked; a task that does not answer keeps its error.
void AskSilentTasks(wire::ClusterReport* report, int64_t timeout_ms = 500);

// Asks the task at `target` for the costs of its own sessions, of at most `steps_max` steps each.
// Waits up to 60 s, because the task has to compile the steps; the text of DeadlineExceeded says
// so. Other errors are those of AskCluster.
StatusOr<wire::CostReport> AskCosts(const std::string& target, int steps_max);

// Makes each master of the task's cluster trace the next `steps` steps of its sessions, and waits
// for them for up to `timeout_ms`. Times are by each task's own clock: see AlignTimes.
// `cancellation`, which may be null, interrupts the wait. InvalidArgument if a number is out of
// range, ResourceExhausted while the task traces already; other errors are those of AskCluster.
StatusOr<ClusterTrace> AskTrace(const std::string& target, int64_t steps, int64_t timeout_ms,
                                Cancellation* cancellation = nullptr);

// Asks by which transports tensors travel between the tasks of the cluster: the protocol, such as
// "shm", by the names of the sending and the receiving task. Pairs of tasks that have exchanged no
// tensors, and pairs whose receiver does not answer within `timeout_ms`, are left out. The errors
// are those of AskCluster.
StatusOr<std::map<std::pair<std::string, std::string>, std::string>> AskRoads(
    const std::string& target, int64_t timeout_ms = 2'000);

}  // namespace penstock
