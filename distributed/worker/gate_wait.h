// SPDX-License-Identifier: Apache-2.0
//
// AwaitGate: has a step that has run wait at its task's gate, for no longer than the step lives.
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
  Scheduler* threads = nullptr;  // borrowed, as is the timer
  DeadlineTimer* timer = nullptr;
  std::string task;  // its name, for errors
};

// Tells the gate that `step` has ended with `ran`. Calls `done` once, on any thread, when the first
// of these comes:
//   the gate's answer      with that
//   the step's cancelled   with the cancellation's error, and what the step waited for
//   its deadline           DeadlineExceeded; cancels the step. `deadline_ns`: 0 is none
// The last two leave the step's place at the gate as it is: what the gate says later is dropped.
void AwaitGate(StepGate& gate, std::shared_ptr<Step> step, const Status& ran, int64_t deadline_ns,
               const GateServices& services, Done done);

}  // namespace penstock
