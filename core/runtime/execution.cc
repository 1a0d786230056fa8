// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/execution.h"

#include <utility>

namespace penstock {

Execution::Execution(const Executable& executable, const ExecutorOptions& options)
    : executable_(executable),
      timer_(*options.timer),
      step_(options),
      loops_(executable, step_),
      nodes_(executable, step_, loops_, threads_),
      threads_(step_, nodes_) {}

Status Execution::Run(const StepArgs& args) {
  Begin(args);
  threads_.Run();
  return End();
}

void Execution::RunAsync(const StepArgs& args, Ended ended) {
  Begin(args);
  ended_ = std::move(ended);
  step_.Share();
  if (step_.has_deadline()) {
    // After RunAsync no thread waits for the step. So if all nodes of the step wait, only a timer
    // can end the step at its deadline.
    armed_ = timer_.Arm(args.deadline_ns, [this] { nodes_.CheckDeadline(); });
  }
  threads_.RunAsync(
      [this] {
        Ended done = std::exchange(ended_, nullptr);
        std::move(done)(End());
      },
      args.may_start_here && executable_.quick());
}

std::optional<StepActivity> Execution::Activity() {
  StepActivity activity;
  activity.shared = step_.Watch([&](int64_t step_id) {
    activity.step_id = step_id;
    loops_.AddActivity(&activity);
    activity.computing = threads_.active() > static_cast<int>(activity.waits.size());
  });
  if (!activity.shared) activity.step_id = step_.running_id();
  if (activity.step_id == 0) return std::nullopt;
  return activity;
}

void Execution::Begin(const StepArgs& args) {
  step_.Begin(args);
  loops_.Begin();
  ReadyQueues& ready = threads_.Begin().ready;
  const std::vector<uint32_t>& roots = executable_.roots();
  for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
    ready.Add(*root | (executable_.pending(*root) & Executable::kExpensive));
  }
}

Status Execution::End() {
  if (armed_.has_value()) timer_.Disarm(*std::exchange(armed_, std::nullopt));
  step_.FinishWork();
  if (loops_.AnyRunning() && !step_.stopped()) [[unlikely]]
    FailStuckLoops();
  const bool failed = step_.stopped();
  Status status = step_.End();
  loops_.End(/*clear=*/failed);
  if (failed) threads_.Clear();
  return status;
}

// Not inlined into End: the temporaries of this function would double End's stack frame.
void Execution::FailStuckLoops() {
  step_.Stop(InvalidArgument("nothing is left to run", loops_.DescribeFrames(),
                             ", which never ends: some of its Enters have not been reached"));
}

}  // namespace penstock
