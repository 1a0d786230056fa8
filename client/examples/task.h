// SPDX-License-Identifier: Apache-2.0
//
// Runs an example program in the role of its task: a ps serves, a worker serves and trains, a
// single process without a cluster only trains.
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

// Exit codes: done; a permanent error; a mistake in the flags. After the next two a new attempt may
// succeed: a task was lost and did not come back in time; a signal ended the training early.
enum ExitCode { kDone = 0, kError = 1, kMistake = 2, kTaskLost = 129, kStopped = 143 };

// If `status` is an error, prints it and returns `code`. Otherwise returns kDone.
int Report(const std::string& program, const Status& status, int code);

struct TaskRole {
  std::string program;  // the name printed before errors
  TaskConfig task;      // an empty cluster: train in this process
  // True: workers other than the chief only serve, until the chief has trained.
  bool chief_drives = false;
  // "grpc://host:port": another process serves the task (`penstock server`), this one only trains.
  std::string server = "";
};
// Runs the role; `train` gets the session target. Returns the exit code.
int RunTask(const TaskRole& role, const std::function<Status(const std::string& target)>& train);

// Adds the flags --job_name, --task_index, --ps_hosts, --worker_hosts, --ps_replica_hosts,
// --replica_index, --listen_address, --protocol and --status_port, and the flags for security,
// verbs and the log.
void AddClusterFlags(CLI::App& app, ClusterFlags* flags);
// Reads the task from the flags or, if they do not name one, from TF_CONFIG in the environment.
// InvalidArgument names the flag.
StatusOr<TaskConfig> FindTask(const CLI::App& app, const ClusterFlags& flags);

// Returns "/job:worker/task:1"; "" without a cluster.
std::string TaskName(const TaskConfig& task);
// Returns the name of the chief: the task of job "chief" or "master" if there is one, else the
// first worker.
std::string ChiefName(const TaskConfig& task);
int NumTasks(const TaskConfig& task, const std::string& job);
// Returns the tasks that compute, in order of name: all except the ps.
std::vector<std::string> Workers(const TaskConfig& task);
// Returns the index of `task` among Workers(). REQUIRES: it is a worker.
int WorkerIndex(const TaskConfig& task);

}  // namespace penstock::examples
