// SPDX-License-Identifier: Apache-2.0
//
// StepProgress: detects that the steps of a training do not change the global step, so that the
// training would never end. A value type; not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "client/program.h"

namespace penstock::client {

class StepProgress {
 public:
  // Add sets a warning after this many steps in a row without a change of the global step; after
  // ten times as many if the train op can change the global step (it may accumulate gradients).
  static constexpr int64_t kWarnAfterSteps = 100;

  // The training ends after `steps_max` steps in a row without a change; 0: never.
  StepProgress(Program& program, Output train, int64_t steps_max);

  // Call this after each step, with the global step after it. Returns FailedPrecondition after
  // `steps_max` steps in a row without a change, unless the train op has a node that may change the
  // global step. Sets `*line` to the warning when it is due.
  Status Add(int64_t global_step, std::string* line);

 private:
  const std::string train_, global_step_name_;
  const bool may_change_;  // true if the train op may change the global step
  const int64_t steps_max_;
  int64_t last_ = -1, unchanged_ = 0;
};

}  // namespace penstock::client
