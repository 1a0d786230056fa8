// SPDX-License-Identifier: Apache-2.0
//
// The steps of TrainingLoop: starts them, and takes their results in the order in which they were
// started.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/seconds.h"
#include "client/training.h"

namespace penstock::client {
namespace {

StatusOr<double> ScalarValue(const std::string& name, const Tensor& tensor) {
  if (tensor.num_elements() == 1) {
    switch (tensor.dtype()) {
      case DType::kFloat:
        return tensor.scalar<float>();
      case DType::kDouble:
        return tensor.scalar<double>();
      case DType::kInt32:
        return tensor.scalar<int32_t>();
      case DType::kInt64:
        return static_cast<double>(tensor.scalar<int64_t>());
      default:
        break;
    }
  }
  return InvalidArgument("measure '", name, "' must be one number, is ", Name(tensor.dtype()),
                         tensor.shape().ToString());
}

}  // namespace

Status TrainingLoop::RunStep() {
  while (blocked_.ok() && MayStart()) blocked_ = StartStep();
  // An error that prevents the next step from starting is returned after the steps before it have
  // ended.
  return under_way_.empty() ? std::exchange(blocked_, OkStatus()) : FinishStep();
}

// Returns whether another step may start: none is under way; or fewer than concurrent_steps are,
// the loop is not stopping, and those under way will not raise the global step to max_steps.
bool TrainingLoop::MayStart() const {
  const auto started = static_cast<int64_t>(under_way_.size());
  return started == 0 || (started < options_.concurrent_steps && !stopping() &&
                          (options_.max_steps == 0 || global_step_ + started < options_.max_steps));
}

Status TrainingLoop::StartStep() {
  // While other steps run, the global step is not known: each step gets a different number.
  const int64_t step = under_way_.empty() ? global_step_ : std::max(global_step_, next_step_);
  next_step_ = step + 1;
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->BeforeStep(step));
  std::vector<HookFetches> wanted;
  ASSIGN_OR_RETURN(const Callable* const callable, StepWith(ExtraFetches(step, &wanted)));
  std::vector<Tensor> batch;
  if (step_.next_batch) {
    ASSIGN_OR_RETURN(batch, step_.next_batch(step));
  }
  RunOptions run{.timeout_ms = Millis(options_.step_seconds)};
  if (signal_ != nullptr) run.cancellation = &signal_->cancellation();
  // Without concurrent steps, the step runs on this thread when its result is awaited.
  const bool traced = options_.trace != nullptr && options_.trace->Take(step);
  const auto run_step = [this, callable, batch, run, step, traced] {
    return traced ? RunTraced(*callable, step, batch, run) : (*callable)(batch, run);
  };
  StartedStep started = options_.concurrent_steps > 1 ? StartedStep(run_step, *options_.scheduler)
                                                      : StartedStep(run_step);
  under_way_.push_back({std::move(batch), std::move(wanted), std::move(started)});
  return OkStatus();
}

StatusOr<std::vector<Tensor>> TrainingLoop::RunTraced(const Callable& callable, int64_t step,
                                                      const std::vector<Tensor>& batch,
                                                      RunOptions run) const {
  run.trace = true;
  RunMetadata metadata;
  const auto now_ns = [this] { return options_.env->WallMicros() * 1000; };
  const int64_t start_ns = now_ns();
  auto outputs = callable(batch, run, &metadata);
  if (outputs.ok()) {
    options_.trace->Add({step, start_ns, now_ns(), std::move(metadata.step_stats)});
  }
  return outputs;
}

Status TrainingLoop::FinishStep() {
  const auto ran = under_way_.front().outputs.get();
  const std::vector<Tensor> batch = std::move(under_way_.front().batch);
  const std::vector<HookFetches> wanted = std::move(under_way_.front().wanted);
  under_way_.pop_front();
  if (!ran.ok()) {
    Status why = ran.status();
    for (TrainingHook* hook : hooks_) why = hook->StepFailed(why);
    return why;
  }
  const std::vector<Tensor>& outputs = *ran;
  global_step_ = std::max(global_step_, outputs[0].scalar<int64_t>());
  std::string line;
  RETURN_IF_ERROR(step_progress_->Add(outputs[0].scalar<int64_t>(), &line));
  if (!line.empty()) Say(LogLevel::kWarning, "no_new_step", line);
  StepResult result{.global_step = global_step_};
  for (size_t i = 0; i < step_.measures.size(); ++i) {
    const std::string& name = step_.measures[i].first;
    ASSIGN_OR_RETURN(result.measures[name], ScalarValue(name, outputs[i + 1]));
    if (name == step_.loss) RETURN_IF_ERROR(CheckLoss(result.measures[name], batch));
  }
  PassExtraFetches(wanted, outputs);
  bool stop = false;
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->AfterStep(result, &stop));
  if (stop) RequestStop();
  return OkStatus();
}

}  // namespace penstock::client
