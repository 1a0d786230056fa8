// SPDX-License-Identifier: Apache-2.0
#include "client/training_context.h"

#include "client/seconds.h"

namespace penstock::client {

bool TrainingContext::stopping() const {
  return stop_requested.load() || (signal != nullptr && signal->requested());
}

RunOptions TrainingContext::StepOptions() const {
  RunOptions run{.timeout_ms = Millis(options.step_seconds)};
  if (signal != nullptr) run.cancellation = &signal->cancellation();
  return run;
}

StatusOr<int64_t> TrainingContext::FetchStep(Session& session) const {
  ASSIGN_OR_RETURN(const Tensor step, session.Fetch(read_step));
  return step.scalar<int64_t>();
}

void TrainingContext::Say(LogLevel level, const char* event, const std::string& line) const {
  if (options.say) return options.say(line);
  Log({.level = level, .event = event, .text = line, .fields = {{"step", global_step}}});
}

}  // namespace penstock::client
