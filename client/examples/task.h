// SPDX-License-Identifier: Apache-2.0
//
// Runs an example program in the role of its task: a ps serves, a worker serves and trains, a
// single process without a cluster only trains. Also the flags that name the task, the names of the
// tasks of its cluster, and exit codes.
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

// Exit codes. kError: a permanent error; kMistake: a mistake in the flags; kTaskLost: a task was
// lost and did not come back in time; kStopped: a signal ended the training early. After kTaskLost
// and kStopped a new attempt may succeed.
enum ExitCode { kDone = 0, kError = 1, kMistake = 2, kTaskLost = 129, kStopped = 143 };

// If `status` is an error, prints it and returns `code`. Otherwise returns kDone.
int Report(const std::string& program, const Status& status, int code);

struct TaskRole {
  std::string program;  // the name printed before errors
  TaskConfig task;      // an empty cluster: train in this process
  // If true, workers other than the chief only serve, until the chief has trained.
  bool chief_drives = false;
  // "grpc://host:port" of another process (`penstock server`) that serves the task; then this
  // process only trains. "": this process serves too.
  std::string server = "";
};
// Serves and trains, as the role says. Calls train with the session target. Returns the exit code.
int RunTask(const TaskRole& role, const std::function<Status(const std::string& target)>& train);

// Adds the flags --job_name, --task_index, --ps_hosts, --worker_hosts, --ps_replica_hosts,
// --replica_index, --listen_address, --protocol and --status_port, and the flags for security,
// verbs and the log.
void AddClusterFlags(CLI::App& app, ClusterFlags* flags);
// Reads the task from the flags or, if they do not name one, from TF_CONFIG in the environment. An
// InvalidArgument names the wrong flag.
StatusOr<TaskConfig> FindTask(const CLI::App& app, const ClusterFlags& flags);

// Returns "/job:worker/task:1"; "" without a cluster.
std::string TaskName(const TaskConfig& task);
// Returns the name of the chief: the task of job "chief" or "master" if there is one, else the
// first worker.
std::string ChiefName(const TaskConfig& task);
int NumTasks(const TaskConfig& task, const std::string& job);
// Returns the names of the tasks that compute, which are all except the ps, in order of name.
std::vector<std::string> Workers(const TaskConfig& task);
// Returns the index of `task` among Workers(). REQUIRES: it is a worker.
int WorkerIndex(const TaskConfig& task);

}  // namespace penstock::examples
