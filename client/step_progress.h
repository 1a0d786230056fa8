// SPDX-License-Identifier: Apache-2.0
//
// StepProgress: detects a training whose steps do not change the global step, and which would
// therefore never end. A value; not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "client/program.h"

namespace penstock::client {

class StepProgress {
 public:
  // The number of steps in a row without a change of the global step after which a line says so.
  // Ten times as many if the train op can change it (gradients may be accumulated).
  static constexpr int64_t kSaidAfter = 100;

  // `steps_max`: how many such steps end the training; 0: any number goes on.
  StepProgress(Program& program, Output train, int64_t steps_max);

  // To be called after each step, with the global step that it has left. FailedPrecondition after
  // `steps_max` steps in a row without a change, unless the train op has a node that may change it.
  // Sets `*line` if there is something to say.
  Status Add(int64_t global_step, std::string* line);

 private:
  const std::string train_, global_step_name_;
  const bool may_change_;  // the train op
  const int64_t steps_max_;
  int64_t last_ = -1, unchanged_ = 0;
};

}  // namespace penstock::client
