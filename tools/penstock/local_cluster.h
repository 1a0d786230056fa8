// SPDX-License-Identifier: Apache-2.0
//
// LocalCluster: runs the tasks of a cluster as processes of one program on this machine.
//
// Each task runs the program with --ps_hosts, --worker_hosts, --job_name and --task_index appended,
// on free ports of the loopback interface. With replicas every ps is two processes, called ps/1.0
// and ps/1.1, which also get --ps_replica_hosts and --replica_index. A task that is killed, or ends
// with a code of 128 or more ("try again"), is restarted while restarts are left. A task that ends
// with a code from 1 to 127 has failed permanently, which ends the cluster. When the workers are
// done the ps get SIGTERM and, if they do not end in time, SIGKILL. Children die with this process.
// Single-threaded. Linux only.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

struct LocalClusterOptions {
  std::vector<std::string> command;  // the program and its own arguments
  int num_ps = 1;
  int num_workers = 1;
  int ps_replicas = 1;   // processes of each ps: 1 or 2
  int restarts_max = 0;  // total for all tasks
  // If true, a worker that is killed when no restarts are left does not end the cluster, unless it
  // is the last worker: the program goes on without it.
  bool elastic = false;
  // If true, a restart of worker 0 also starts the workers again that have ended with code 0:
  // worker 0 may go back to a checkpoint, and then needs them.
  bool restart_ended_workers = false;
  // The folder for the tasks' output: `log_dir`/worker-1.log and so on. Worker 0's output is
  // printed unchanged. Empty: all output is printed, with the task before each line.
  std::string log_dir = "";
  // How long tasks may take to end after SIGTERM.
  int grace_seconds = 30;
  // If true, the ps continue to serve after the workers are done, until `stop` is set.
  bool keep_running = false;
  // Passed to worker 0 as --status_port; its page shows the complete cluster. 0: not passed.
  int status_port = 0;
};

class LocalCluster {
 public:
  explicit LocalCluster(LocalClusterOptions options) : options_(std::move(options)) {}
  ~LocalCluster();

  Status Start();
  // Waits until all workers have ended, a task has failed permanently, or `stop` is set (by a
  // signal handler); then ends all tasks. With keep_running, keeps the parameter servers after the
  // workers' end until `stop` is set or a parameter server fails. Returns the exit code: 0, that of
  // the failed task, or 130 if `stop` was set before the workers had ended.
  int Wait(const std::atomic<bool>& stop);

 private:
  struct Task {
    std::string job;
    int index = 0;
    int replica = -1;   // -1: the task has no replicas
    pid_t pid = -1;     // process id; -1: not running
    bool done = false;  // true if the task has ended with exit code 0
    bool lost = false;  // true if the task was killed, and the others go on without it
    int output = -1;    // the read end of the task's output pipe, or -1
    std::string line;   // the beginning of an incomplete line of output
    std::string name() const {
      return replica < 0 ? StrCat(job, "/", index) : StrCat(job, "/", index, ".", replica);
    }
  };

  Status Launch(Task& task);
  [[noreturn]] void Exec(const Task& task, int output);
  void CopyOutput(int timeout_ms);
  static void PrintLine(const std::string& task, const std::string& line);
  void PrintLines(Task& task, string_view text);
  // Handles the end of a task's process: starts the task again if it may be restarted. Returns the
  // task's exit code if it has failed and was not started again, else 0.
  int Reap(Task& task, int wait_status);
  // Starts the workers that have ended again, with restart_ended_workers, if `task` is worker 0,
  // which has been started again.
  void LaunchWorkersFor(const Task& task);
  // Returns whether the cluster goes on without `task`, a worker that was killed.
  bool GoesOnWithout(const Task& task, int wait_status) const;
  int ReapAll();
  bool WorkersDone() const;
  // Waits until `stop` is set, and returns 0; or until a task fails, and returns its exit code.
  int WaitUntilStopped(const std::atomic<bool>& stop);
  void Shutdown();

  LocalClusterOptions options_;
  std::vector<Task> tasks_;
  std::string ps_hosts_, worker_hosts_, ps_replica_hosts_;
  int restarts_ = 0;
};

}  // namespace penstock
