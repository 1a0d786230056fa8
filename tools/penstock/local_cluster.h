// SPDX-License-Identifier: Apache-2.0
//
// LocalCluster: the tasks of a cluster as processes of one program on this machine.
//
// Each task is the program with --ps_hosts, --worker_hosts, --job_name and --task_index appended,
// on ports of the loopback interface that were free. With replicas every ps is two processes, which
// get --ps_replica_hosts and --replica_index as well, and are called ps/1.0 and ps/1.1. A task that
// is killed (or ends with a code of 128 or more, which says "try again") is started anew while
// restarts are left; one that ends with a code from 1 to 127 has failed for good and ends the
// cluster. When the workers are done the ps are asked to end (SIGTERM), then made to. Children die
// with this process. Single-threaded. Linux.
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
  int restarts_max = 0;  // of all tasks together
  // The folder for each task's output: it goes to `log_dir`/worker-1.log and so on, except for
  // worker 0, whose output stays as it is. Empty: everything is printed with the task in front of
  // each line.
  std::string log_dir = "";
  // How long tasks may take to end once asked to.
  int grace_seconds = 30;
  // When the workers are done, the ps go on serving until `stop` is set.
  bool keep_running = false;
  // Given to worker 0, as --status_port: its page shows the whole cluster. 0: to no task.
  int status_port = 0;
};

class LocalCluster {
 public:
  explicit LocalCluster(LocalClusterOptions options) : options_(std::move(options)) {}
  ~LocalCluster();

  Status Start();
  // Until all workers have ended, a task has failed for good, or `stop` is set (by a signal
  // handler). Returns the exit code: 0, that of the task that failed, or 130 when stopped.
  int Wait(const std::atomic<bool>& stop);

 private:
  struct Task {
    std::string job;
    int index = 0;
    int replica = -1;   // -1: the task is one process
    pid_t pid = -1;     // -1: not running
    bool done = false;  // ended with 0
    int output = -1;    // our end of its pipe, or -1
    std::string line;   // what it has printed of a line not yet ended
    std::string name() const {
      return replica < 0 ? StrCat(job, "/", index) : StrCat(job, "/", index, ".", replica);
    }
  };

  Status Launch(Task& task);
  [[noreturn]] void Exec(const Task& task, int output);
  void CopyOutput(int timeout_ms);
  void PrintLines(Task& task, string_view text);
  // Collects a task that has ended. Returns its exit code if it has failed for good, else 0.
  int Reap(Task& task, int wait_status);
  int ReapAll();
  bool WorkersDone() const;
  void Keep(const std::atomic<bool>& stop);
  void Shutdown();

  LocalClusterOptions options_;
  std::vector<Task> tasks_;
  std::string ps_hosts_, worker_hosts_, ps_replica_hosts_;
  int restarts_ = 0;
};

}  // namespace penstock
