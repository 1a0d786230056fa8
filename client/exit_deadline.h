// SPDX-License-Identifier: Apache-2.0
//
// ExitDeadline: the process ends within a time, whatever it waits for. A kernel in a call of the
// operating system that does not return (a disk that hangs) cannot be cancelled, nor can the
// threads that wait for it; so the process says what still ran, and exits without them.
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
  // As after SIGTERM without a handler: who starts tasks again takes it for "try again".
  static constexpr int kExitCode = 128 + 15;

  // Ends the process in `seconds`, unless the object is destroyed before. `describe` says what
  // still runs; null or "": the calls of the operating system that do (BlockingCall). `scheduler`
  // is one of real threads.
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
  bool in_time_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace penstock::client
