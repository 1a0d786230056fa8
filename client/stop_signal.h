// SPDX-License-Identifier: Apache-2.0
//
// StopSignal: turns SIGTERM and SIGINT into a request to end normally: finish the step, save,
// return. A step that has not ended when the grace period after the signal is over is cancelled. A
// second signal of the same kind ends the process as if there were no handler.
//
// At most one exists at a time; its destructor restores the previous handlers. Thread-safe.
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
  // `scheduler` must have real threads, because only those receive signals.
  explicit StopSignal(double grace_seconds, Env& env = Env::Real(),
                      Scheduler& scheduler = Scheduler::Real());
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const { return requested_.load(std::memory_order_acquire); }
  // Returns the cancellation, for RunOptions, that is cancelled when the grace period is over.
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
