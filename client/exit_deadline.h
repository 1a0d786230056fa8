// SPDX-License-Identifier: Apache-2.0
//
// ExitDeadline: ends the process after a time limit, even if threads still run. A kernel inside a
// system call that does not return (because a disk hangs) cannot be cancelled, nor can the threads
// that wait for the kernel. So the process logs what still runs and exits without waiting.
//
//   ExitDeadline deadline(5, [&] { return server.DescribeRunning(); });
//   server.Stop();
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class ExitDeadline {
 public:
  // The exit code, which is the one that a shell reports for a process ended by SIGTERM. Programs
  // that restart tasks start a task again after this code.
  static constexpr int kExitCode = 128 + 15;

  // Ends the process after `seconds`, unless the object is destroyed before. `describe` returns
  // what still runs, for the log; if it is null or returns "", the log names the running system
  // calls (BlockingCall).
  // `scheduler` must have real threads.
  explicit ExitDeadline(double seconds, std::function<std::string()> describe = nullptr,
                        Env& env = Env::Real(), Scheduler& scheduler = Scheduler::Real());
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  void Watch(double seconds);

  const std::function<std::string()> describe_;
  Env& env_;
  Mutex mu_;
  Condition ended_;
  bool ended_in_time_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace penstock::client
