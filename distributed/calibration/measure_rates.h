// SPDX-License-Identifier: Apache-2.0
//
// MeasureCpuRates: how fast this process runs kernels on its CPU, in the terms of the compiler's
// estimates (DeviceRates): a graph of small nodes for the time of a kernel that does next to
// nothing, a product of two matrices for floating-point operations, a negation of 16 MB for memory.
// The process's own kernels run, on its own executor, so threads and libraries count.
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
  Scheduler* threads = nullptr;  // that kernels will run on
  Env* env = nullptr;            // whose clock counts
  DeadlineTimer* timer = nullptr;
  // No new run of a graph begins after this. Each of the three graphs runs twice at least.
  int64_t limit_ns = 200'000'000;
};

// Blocks for about `limit_ns`; call it before steps run. NotFound if the registry lacks an op;
// OutOfRange if a rate cannot be true (the clock stands still).
StatusOr<DeviceRates> MeasureCpuRates(const MeasureOptions& options);

}  // namespace penstock
