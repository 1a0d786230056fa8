// SPDX-License-Identifier: Apache-2.0
//
// CallThreads: a thread for each call that has to wait for others (creating, extending and closing
// sessions). At most kThreadsMax at a time; calls beyond that wait for a thread. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"

namespace penstock {

class CallThreads {
 public:
  using Call = absl::AnyInvocable<void() &&>;
  static constexpr int kThreadsMax = 64;
  static constexpr size_t kWaitingMax = 1'000;

  ~CallThreads() { Wait(); }

  // ResourceExhausted, and `call` is not run, where too many wait or the system has no thread.
  Status Run(Call call) {
    {
      std::lock_guard<std::mutex> lock(mu_);
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
    try {
      std::thread([this, call = std::move(call)]() mutable { RunAll(std::move(call)); }).detach();
      return OkStatus();
    } catch (const std::system_error& e) {
      std::lock_guard<std::mutex> lock(mu_);
      Ended();
      return ResourceExhausted("no thread for the call: ", e.what());
    }
  }

  // Returns when no call runs or waits.
  void Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    none_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  // `call`, and then those that wait.
  void RunAll(Call call) {
    while (true) {
      std::move(call)();
      call = nullptr;
      std::lock_guard<std::mutex> lock(mu_);
      if (waiting_.empty()) return Ended();
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
  }

  void Ended() {
    if (--running_ == 0) none_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable none_;
  int running_ = 0;
  std::deque<Call> waiting_;  // empty unless running_ == kThreadsMax
};

}  // namespace penstock
