// SPDX-License-Identifier: Apache-2.0
//
// TrainingContext: the data that the parts of a TrainingLoop share: the program, the options and
// the global step. Private to TrainingLoop.
//
//   TrainingLoop      begins and ends the training, and recovers from failures
//   TrainingSession     waits for tasks, and gives the variables of a new session their values
//   TrainingSteps       runs the steps
//   TrainingSaves       saves and restores checkpoints
//
// Only the thread of TrainingLoop::Run uses it, except stop_requested and the options. The options
// are constant, and concurrent steps and the signal's callback read them too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/stop_signal.h"
#include "client/training.h"
#include "core/base/log.h"

namespace penstock::client {

struct TrainingContext {
  TrainingContext(Program& program, TrainingStep step, TrainingOptions options)
      : program(program),
        step(std::move(step)),
        options(std::move(options)),
        shared(((void)program.GlobalStep(), program.globals())) {}

  // Returns whether RequestStop or a signal ends the training after the step.
  bool stopping() const;
  // Returns whether this worker initialises and saves. The result may change if there is a group.
  bool is_chief() const {
    return options.group != nullptr ? options.group->is_chief() : options.is_chief;
  }
  // Returns the options of a step: its timeout, and the signal's cancellation.
  RunOptions StepOptions() const;
  StatusOr<int64_t> FetchStep(Session& session) const;
  // Passes `line` to TrainingOptions::say or, if that is null, to the log.
  void Say(LogLevel level, const char* event, const std::string& line) const;

  Program& program;
  const TrainingStep step;
  const TrainingOptions options;
  const std::vector<Variable> shared;  // the variables that are not local to a worker
  Output read_step;                    // the global step
  std::vector<TrainingHook*> hooks;
  std::unique_ptr<StopSignal> signal;  // null: signals do not end the training
  std::atomic<bool> stop_requested{false};
  int64_t global_step = 0;  // the global step after the last step
  // Whether this worker has taken all steps, with its group, and waits until the last checkpoint is
  // saved.
  bool all_steps_taken = false;
};

}  // namespace penstock::client
