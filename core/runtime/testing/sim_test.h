// SPDX-License-Identifier: Apache-2.0
//
// SimTest: a base for tests of waits, retries and timeouts, on a simulated clock and in one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/env.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/runtime/deadline_timer.h"
#include "gtest/gtest.h"

namespace penstock {

class SimTest : public testing::Test {
 protected:
  // Runs `body` and all closures that it starts to their end. `timer_` exists meanwhile.
  void Simulate(const std::function<void()>& body) {
    const Status status = scheduler_.Run([&] {
      timer_ = NewThreadTimer(env_, scheduler_);
      body();
      timer_ = nullptr;
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  // Lets all other closures run for `ms` milliseconds of simulated time.
  void Pass(int64_t ms) { env_.SleepForNanos(ms * 1'000'000); }
  int64_t NowMs() { return env_.NowNanos() / 1'000'000; }

  SimScheduler scheduler_{{.limit_ns = int64_t{365} * 24 * 3600 * 1'000'000'000}};
  SimEnv env_{scheduler_, Env::Real()};
  std::unique_ptr<DeadlineTimer> timer_;
};

}  // namespace penstock
