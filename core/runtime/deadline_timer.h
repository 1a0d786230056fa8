// SPDX-License-Identifier: Apache-2.0
//
// DeadlineTimer: one thread that ends what has outlived its deadline.
//
// Deadlines are hardly ever reached, so arming and disarming must be cheap and the thread must
// sleep: it is woken only for a deadline earlier than the one it sleeps for, and not at all by a
// disarmed one. The thread starts with the first Arm. Thread-safe. A task has one; it outlives
// everything armed with it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/env.h"

namespace penstock {

class DeadlineTimer {
 public:
  // The time at which it rings, and a number that makes it unique.
  using Token = std::pair<int64_t, uint64_t>;

  explicit DeadlineTimer(Env& env) : env_(env) {}
  ~DeadlineTimer();
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;
  // The process's own, on the real clock. Lives for ever.
  static DeadlineTimer& Real();

  // Calls `expired` on the timer's thread once Env::NowNanos() has reached `deadline_ns`. It must
  // be quick and must not Disarm itself.
  Token Arm(int64_t deadline_ns, std::function<void()> expired);
  // Returns when `expired` will not be called, or has returned.
  void Disarm(const Token& token);

 private:
  void Run();

  Env& env_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::condition_variable ran_;
  std::map<Token, std::function<void()>> armed_;
  uint64_t next_number_ = 1;
  Token running_{0, 0};
  int64_t sleeps_until_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace penstock
