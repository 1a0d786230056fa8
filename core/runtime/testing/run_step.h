// SPDX-License-Identifier: Apache-2.0
//
// Runs one step of an executor, by Run or by RunAsync.
#pragma once

#include "core/base/join.h"
#include "core/base/scheduler.h"
#include "core/runtime/executor.h"

namespace penstock {

enum class RunMode { kRun, kRunAsync };

// Waits until the step has ended, and returns its status.
inline Status RunStep(Executor& executor, const StepArgs& args, RunMode mode) {
  if (mode == RunMode::kRun) return executor.Run(args);
  Wait wait(Scheduler::Real(), "the end of a step");
  executor.RunAsync(args, wait.done());
  return wait.Get();
}

}  // namespace penstock
