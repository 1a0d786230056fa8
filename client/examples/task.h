// SPDX-License-Identifier: Apache-2.0
//
// Runs an example program as the task that it is: a ps serves, a worker serves and trains, a lone
// process only trains.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace CLI {
class App;
}

namespace penstock::examples {

// Exit codes: done, an error that stays, a mistake in the flags; try again: a task was lost and did
// not come back in time, a signal has ended the training early.
enum ExitCode { kDone = 0, kError = 1, kMistake = 2, kTaskLost = 129, kStopped = 143 };

// Writes a line for people, if there is an error; returns `code` then, and kDone otherwise.
int Report(const std::string& program, const Status& status, int code);

struct TaskRole {
  std::string program;  // the name that stands before errors
  TaskConfig task;      // an empty cluster: everything in this process
  // Workers that are not the chief only serve it, until it has trained.
  bool chief_drives = false;
  // "grpc://host:port": another process serves the task (`penstock server`), this one only trains.
  std::string server = "";
};
// Plays the role; `train` gets the address of the session to use. Returns the exit code.
int RunTask(const TaskRole& role, const std::function<Status(const std::string& target)>& train);

// --job_name, --task_index, --ps_hosts, --worker_hosts, --ps_replica_hosts, --replica_index,
// --listen_address, --protocol, --status_port.
void AddClusterFlags(CLI::App& app, ClusterFlags* flags);
// Reads the task from the flags or, if they do not name one, from TF_CONFIG in the environment.
// InvalidArgument names the flag.
StatusOr<TaskConfig> FindTask(const CLI::App& app, const ClusterFlags& flags);

// "/job:worker/task:1"; "" without a cluster.
std::string TaskName(const TaskConfig& task);
// The one that initialises and saves: a job of its own if there is one, else the first worker.
std::string ChiefName(const TaskConfig& task);
int NumTasks(const TaskConfig& task, const std::string& job);
// The tasks that compute, in order of name: all but the ps.
std::vector<std::string> Workers(const TaskConfig& task);
// Returns the index of `task` among Workers(); REQUIRES that it is one.
int WorkerIndex(const TaskConfig& task);

}  // namespace penstock::examples
