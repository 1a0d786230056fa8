// SPDX-License-Identifier: Apache-2.0
//
// LongLoop: a ParallelFor for kernels with loops that may take longer than 50 ms. It splits the
// loop into blocks. Between blocks it tests whether the step has been cancelled or is past its
// deadline; if so, the loop ends early.
//
//   RETURN_IF_ERROR(LongLoop(ctx.step(), count, kCostNanos, [&](int64_t begin, int64_t end)
//   {...}));
//
// A loop shorter than one block costs the same as with ParallelFor.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/op/kernel.h"

namespace penstock {

// Returns OK while the step continues, the cancellation's status if the step was cancelled, or
// DeadlineExceeded if its deadline has passed.
inline Status CheckStepContinues(const StepContext& step) {
  if (step.cancellation != nullptr && step.cancellation->cancelled()) {
    return step.cancellation->status();
  }
  if (step.deadline_ns == 0 || step.env->NowNanos() < step.deadline_ns) return OkStatus();
  return DeadlineExceeded("step ", step.step_id, " did not end before its deadline");
}

// Calls `fn` with ranges that together cover [0, total), in parallel. Returns the error of
// CheckStepContinues if the loop ended early. `cost_ns` is a rough estimate of the time for one
// index; blocks are sized to take 2 ms by this estimate, and may really take ten times longer.
inline Status LongLoop(const StepContext& step, int64_t total, double cost_ns,
                       Scheduler::Range fn) {
  constexpr double kBlockNanos = 2e6;
  const int64_t block = std::max<int64_t>(1, static_cast<int64_t>(kBlockNanos / cost_ns));
  std::atomic<bool> ended{false};
  step.threads->ParallelFor(total, cost_ns, [&](int64_t begin, int64_t end) {
    for (; begin < end && !ended.load(std::memory_order_relaxed); begin += block) {
      if (begin > 0 && !CheckStepContinues(step).ok()) return ended.store(true);
      fn(begin, std::min(end, begin + block));
    }
  });
  return ended.load() ? CheckStepContinues(step) : OkStatus();
}

}  // namespace penstock
