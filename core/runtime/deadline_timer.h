// SPDX-License-Identifier: Apache-2.0
//
// DeadlineTimer: calls back when a point in time has come; what ends steps that outlive their
// deadline.
//
// Deadlines are hardly ever reached, so arming and disarming are cheap. Thread-safe. It outlives
// everything armed with it.
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
  // The time at which it rings, and a number that makes it unique.
  using Token = std::pair<int64_t, uint64_t>;

  virtual ~DeadlineTimer() = default;
  // On the real clock. Lives for ever.
  static DeadlineTimer& Real();

  // Calls `expired` on the timer's thread once Env::NowNanos() has reached `deadline_ns`. It must
  // be quick and must not Disarm itself.
  virtual Token Arm(int64_t deadline_ns, std::function<void()> expired) = 0;
  // Returns when `expired` will not be called, or has returned.
  virtual void Disarm(const Token& token) = 0;
};

// With a thread of its own, which starts with the first Arm and sleeps between deadlines. `env` is
// the one that belongs to `scheduler`: in a simulation both are simulated.
std::unique_ptr<DeadlineTimer> NewThreadTimer(Env& env, Scheduler& scheduler);

}  // namespace penstock
