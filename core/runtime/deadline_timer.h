// SPDX-License-Identifier: Apache-2.0
//
// DeadlineTimer: runs a callback at a point in time. It ends steps at their deadlines.
//
// Deadlines are rarely reached, so Arm and Disarm are cheap. Thread-safe. The timer must outlive
// all armed callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock {

class DeadlineTimer {
 public:
  // The time at which the callback runs, and a number that makes the token unique.
  using Token = std::pair<int64_t, uint64_t>;

  virtual ~DeadlineTimer() = default;
  // Returns the timer on the real clock. It is never destroyed.
  static DeadlineTimer& Real();

  // Calls `expired` on the timer's thread when Env::NowNanos() reaches `deadline_ns`. `expired`
  // must be quick and must not call Disarm for itself.
  virtual Token Arm(int64_t deadline_ns, std::function<void()> expired) = 0;
  // Removes the callback with this token. When Disarm returns, `expired` is not running and will
  // not be called.
  virtual void Disarm(const Token& token) = 0;
};

// Creates a timer with a thread of its own, which starts with the first Arm and sleeps between
// deadlines. `env` must belong to `scheduler`: in a simulation both are simulated.
std::unique_ptr<DeadlineTimer> NewThreadTimer(Env& env, Scheduler& scheduler);

}  // namespace penstock
