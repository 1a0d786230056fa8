// SPDX-License-Identifier: Apache-2.0
//
// StepGate: the worker tells it when each step of a task begins and ends, and the gate decides when
// the worker may report the end outside the task. ReplicaLog, which implements it, delays the end
// until another process has the step's changes.
#pragma once

#include <cstdint>

#include "core/base/done.h"
#include "core/base/status.h"

namespace penstock {

// Thread-safe; calls do not block.
class StepGate {
 public:
  // Notes that the task's part of the step begins.
  virtual void StepBegins(int64_t step_id) = 0;
  // Notes that the part has ended with `status`: no kernel of it runs any more. `done` is called
  // with `status`, or with the gate's error, on any thread.
  virtual void StepEnds(int64_t step_id, const Status& status, Done done) = 0;
  // Returns the event that steps wait for here, for errors: "the follower to acknowledge its
  // changes".
  virtual const char* awaited() const = 0;

 protected:
  ~StepGate() = default;
};

}  // namespace penstock
