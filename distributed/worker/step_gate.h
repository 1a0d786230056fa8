// SPDX-License-Identifier: Apache-2.0
//
// StepGate: is told which steps run in a task, and decides when the end of one may be known
// outside. ReplicaLog holds it back until another process has what the step changed.
#pragma once

#include <cstdint>

#include "core/base/done.h"
#include "core/base/status.h"

namespace penstock {

// Thread-safe; calls do not block.
class StepGate {
 public:
  // The task's part of the step begins.
  virtual void StepBegins(int64_t step_id) = 0;
  // It has ended with `status`: nothing of it runs any more. `done` is called with that, or with
  // the gate's error, on any thread.
  virtual void StepEnds(int64_t step_id, const Status& status, Done done) = 0;
  // Returns what steps wait for here, for errors: "the follower to acknowledge its changes".
  virtual const char* awaited() const = 0;

 protected:
  ~StepGate() = default;
};

}  // namespace penstock
