// SPDX-License-Identifier: Apache-2.0
//
// AwaitGate: makes a step whose nodes have all run wait for the answer of its task's StepGate, but
// only until the step is cancelled or its deadline passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/done.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/worker/step.h"
#include "distributed/worker/step_gate.h"

namespace penstock {

struct GateServices {
  Scheduler* threads = nullptr;  // this and the timer are borrowed
  DeadlineTimer* timer = nullptr;
  std::string task;  // the task's name, for errors
};

// Reports to the gate that `step` has ended with the status `ran`. Calls `done` once, on any
// thread, when the first of these happens:
//   the gate answers          with the gate's status
//   the step is cancelled     with the cancellation's error, and what the step waited for
//   the deadline passes       with DeadlineExceeded; cancels the step. `deadline_ns`: 0 is none
// In the last two cases the gate still holds the step, and its later answer is dropped.
void AwaitGate(StepGate& gate, std::shared_ptr<Step> step, const Status& ran, int64_t deadline_ns,
               const GateServices& services, Done done);

}  // namespace penstock
