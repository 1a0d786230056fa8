// SPDX-License-Identifier: Apache-2.0
//
// CallThreads: a thread for each call that has to wait for others (creating, extending and closing
// sessions): few at a time, and none may wait behind another. Bounded; thread-safe.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace penstock {

class CallThreads {
 public:
  static constexpr int kThreadsMax = 64;

  ~CallThreads() { Wait(); }

  // ResourceExhausted, and `call` is not run, where too many are at work.
  Status Run(absl::AnyInvocable<void() &&> call) {
    {
      MutexLock lock(mu_);
      if (running_ == kThreadsMax) {
        return ResourceExhausted(kThreadsMax, " sessions are being created or closed already");
      }
      ++running_;
    }
    try {
      std::thread([this, call = std::move(call)]() mutable {
        std::move(call)();
        call = nullptr;
        Ended();
      }).detach();
      return OkStatus();
    } catch (const std::system_error& e) {
      Ended();
      return ResourceExhausted("no thread for the call: ", e.what());
    }
  }

  void Wait() {
    MutexLock lock(mu_);
    while (running_ > 0) none_.Wait(mu_);
  }

 private:
  void Ended() {
    MutexLock lock(mu_);
    if (--running_ == 0) none_.NotifyAll();
  }

  Mutex mu_;
  CondVar none_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
