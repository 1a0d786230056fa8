// SPDX-License-Identifier: Apache-2.0
//
// SimEnv: the Env of a simulation. It has the clock of a SimScheduler, random numbers from the
// scheduler's seed, and the files of another Env.
#pragma once

#include <cstdint>

#include "core/base/forwarding_env.h"
#include "core/base/sim/sim_scheduler.h"

namespace penstock {

class SimEnv final : public ForwardingEnv {
 public:
  // Borrows both arguments.
  SimEnv(SimScheduler& scheduler, Env& files) : ForwardingEnv(files), scheduler_(scheduler) {}

  int64_t NowNanos() override { return scheduler_.now_ns(); }
  // Returns the simulated wall time, which starts at 2020-01-01.
  int64_t WallMicros() override { return kWallStartMicros + scheduler_.now_ns() / 1'000; }
  void SleepForNanos(int64_t nanos) override { scheduler_.SleepUntil(scheduler_.now_ns() + nanos); }
  uint64_t RandomU64() override { return scheduler_.Random(); }

 private:
  static constexpr int64_t kWallStartMicros = int64_t{1'577'836'800} * 1'000'000;

  SimScheduler& scheduler_;
};

}  // namespace penstock
