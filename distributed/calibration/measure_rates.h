// SPDX-License-Identifier: Apache-2.0
//
// MeasureCpuRates: measures how fast this process runs kernels on its CPU, as DeviceRates, which
// the compiler's estimates use. Runs three graphs: many small nodes (the cost of launching a
// kernel), a product of two matrices (floating-point operations), and the negation of 16 MB
// (memory). They run on the process's own executor and kernels, so the rates include the effects of
// its threads and libraries.
#pragma once

#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/op/device_name.h"
#include "core/op/registry.h"
#include "core/runtime/deadline_timer.h"

namespace penstock {

struct MeasureOptions {
  const Registry* registry = nullptr;
  Scheduler* threads = nullptr;  // runs the kernels
  Env* env = nullptr;            // its clock times the runs
  DeadlineTimer* timer = nullptr;
  // Each of the three graphs runs at least twice, and again until a third of this time has passed.
  int64_t limit_ns = 200'000'000;
};

// Returns the measured rates. Blocks for about `limit_ns`; call it before steps run. NotFound if
// the registry lacks an op; OutOfRange if a measured rate is impossible, because the clock stands
// still for example.
StatusOr<DeviceRates> MeasureCpuRates(const MeasureOptions& options);

}  // namespace penstock
