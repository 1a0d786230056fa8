// SPDX-License-Identifier: Apache-2.0
//
// CallThreads: a thread for each call that has to wait for others (creating, extending and closing
// sessions): few at a time, and none may wait behind another. Bounded; thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"

namespace penstock {

class CallThreads {
 public:
  static constexpr int kThreadsMax = 64;

  ~CallThreads() { Wait(); }

  // ResourceExhausted, and `call` is not run, where too many are at work.
  Status Run(absl::AnyInvocable<void() &&> call) {
    {
      std::lock_guard<std::mutex> lock(mu_);
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
    std::unique_lock<std::mutex> lock(mu_);
    none_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void Ended() {
    std::lock_guard<std::mutex> lock(mu_);
    if (--running_ == 0) none_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable none_;
  int running_ = 0;
};

}  // namespace penstock
