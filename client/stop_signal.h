// SPDX-License-Identifier: Apache-2.0
//
// StopSignal: turns SIGTERM and SIGINT into a request to end in good order: finish the step, save,
// return. A step that has not ended by itself some time after the signal is cancelled; a second
// signal of the same kind ends the process as ever.
//
// At most one exists at a time; it puts back what it found. Thread-safe.
#pragma once

#include <signal.h>

#include <atomic>
#include <memory>

#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class StopSignal {
 public:
  // `scheduler` is one of real threads: the system's signals come to nothing else.
  explicit StopSignal(double grace_seconds, Env& env = Env::Real(),
                      Scheduler& scheduler = Scheduler::Real());
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const { return requested_.load(std::memory_order_acquire); }
  // Cancelled when the grace is over. For RunOptions.
  Cancellation& cancellation() { return cancellation_; }

 private:
  void Watch(double grace_seconds);

  Env& env_;
  std::atomic<bool> requested_{false};
  Cancellation cancellation_;
  Mutex mu_;
  Condition ended_;
  bool end_ ABSL_GUARDED_BY(mu_) = false;
  int pipe_[2] = {-1, -1};
  struct sigaction old_term_, old_int_;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace penstock::client
