// SPDX-License-Identifier: Apache-2.0
//
// Alarm: calls a function at a point in time, on the pool.
//
// Thread-safe. The thread that waits for the time starts with the first Set and ends with the
// Alarm. Both times and waits are those of the Env and the Scheduler, which may be simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock {

class Alarm {
 public:
  // Borrows `threads` and `env`. `ring` may be called after the Alarm is destroyed, so it must not
  // borrow the Alarm's owner.
  Alarm(Scheduler& threads, Env& env, std::function<void()> ring);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Calls `ring` once when Env::NowNanos() reaches `at_ns`, or earlier if an earlier time is set.
  void Set(int64_t at_ns);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock
