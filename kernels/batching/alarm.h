// SPDX-License-Identifier: Apache-2.0
//
// Alarm: calls a function at a point in time, on the pool.
//
// Thread-safe. Each Alarm has a thread, which waits for the time; the destructor ends the thread.
// The Alarm takes the time from the Env and waits through the Scheduler; tests may simulate both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"

namespace penstock {

class Alarm {
 public:
  // The maximum number of Alarms in a process. It is limited because each Alarm has a thread, and
  // one graph may need many Alarms.
  static constexpr int kAlarmsMax = 1000;

  // Borrows `threads` and `env`. `ring` may be called after the Alarm is destroyed, so it must not
  // borrow the Alarm's owner. ResourceExhausted if the process has kAlarmsMax Alarms, or if the
  // system cannot start a thread.
  static StatusOr<std::unique_ptr<Alarm>> Make(Scheduler& threads, Env& env,
                                               std::function<void()> ring);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Calls `ring` once when Env::NowNanos() reaches `at_ns`, or earlier if an earlier time is set.
  void Set(int64_t at_ns);

 private:
  struct State;
  explicit Alarm(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;
};

}  // namespace penstock
