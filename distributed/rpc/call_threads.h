// SPDX-License-Identifier: Apache-2.0
//
// CallThreads: runs each call that may block (creating, extending and closing sessions) on a
// thread of its own. At most kThreadsMax run at a time; further calls wait for a thread.
// Thread-safe.
#pragma once

#include <deque>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/cond_var.h"
#include "core/base/detached_thread.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace penstock {

class CallThreads {
 public:
  using Call = absl::AnyInvocable<void() &&>;
  static constexpr int kThreadsMax = 64;
  static constexpr size_t kWaitingMax = 1'000;

  ~CallThreads() { Wait(); }

  // Runs `call` on a thread. ResourceExhausted, and `call` is not run, if too many calls wait
  // or the system has no thread.
  Status Run(Call call) {
    {
      MutexLock lock(mu_);
      if (running_ == kThreadsMax) {
        if (waiting_.size() == kWaitingMax) {
          return ResourceExhausted(kThreadsMax + kWaitingMax,
                                   " sessions are being created or closed already");
        }
        waiting_.push_back(std::move(call));
        return OkStatus();
      }
      ++running_;
    }
    const Status started = StartDetachedThread(
        "call", [this, call = std::move(call)]() mutable { RunAll(std::move(call)); });
    if (started.ok()) return started;
    MutexLock lock(mu_);
    Ended();
    return started;
  }

  // Waits until no call runs or waits.
  void Wait() {
    MutexLock lock(mu_);
    while (running_ > 0) no_calls_left_.Wait(mu_);
  }

 private:
  // Runs `call`, and then the calls that wait.
  void RunAll(Call call) {
    while (true) {
      std::move(call)();
      call = nullptr;
      MutexLock lock(mu_);
      if (waiting_.empty()) return Ended();
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }

  void Ended() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (--running_ == 0) no_calls_left_.NotifyAll();
  }

  Mutex mu_;
  CondVar no_calls_left_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Call> waiting_ ABSL_GUARDED_BY(mu_);  // empty unless running_ == kThreadsMax
};

}  // namespace penstock
