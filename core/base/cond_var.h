// SPDX-License-Identifier: Apache-2.0
//
// CondVar: a condition variable for Mutex (core/base/mutex.h).
//
//   MutexLock lock(mu_);
//   while (queue_.empty()) added_.Wait(mu_);
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/base/mutex.h"

namespace penstock {

// A condition variable. Wait releases the mutex and holds it again when it returns. It may return
// without a notification: call it in a loop that tests the condition.
class CondVar {
 public:
  void Wait(Mutex& mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    wake_.wait(lock);
    lock.release();
  }
  // Returns false if the deadline has passed.
  template <class Clock, class Duration>
  bool WaitUntil(Mutex& mu, std::chrono::time_point<Clock, Duration> time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const std::cv_status status = wake_.wait_until(lock, time);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  // Returns false if the timeout has passed.
  template <class Rep, class Period>
  bool WaitFor(Mutex& mu, std::chrono::duration<Rep, Period> time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const std::cv_status status = wake_.wait_for(lock, time);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { wake_.notify_one(); }
  void NotifyAll() { wake_.notify_all(); }

 private:
  std::condition_variable wake_;
};

}  // namespace penstock
