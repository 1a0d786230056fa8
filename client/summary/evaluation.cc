// SPDX-License-Identifier: Apache-2.0
#include "client/summary/evaluation.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/checkpoint/checkpoint_state.h"

namespace penstock::client {
namespace {

constexpr int64_t kSleepNanos = 50'000'000;

StatusOr<double> NumberOf(const std::string& name, const Tensor& tensor) {
  if (tensor.num_elements() == 1) {
    if (tensor.dtype() == DType::kFloat) return tensor.scalar<float>();
    if (tensor.dtype() == DType::kDouble) return tensor.scalar<double>();
  }
  return InvalidArgument("evaluation: measure '", name, "' must be one float or double, is ",
                         Name(tensor.dtype()), tensor.shape().ToString());
}

// Returns a text such as "accuracy 0.9012, loss 0.2712".
std::string Describe(const Measures& measures) {
  std::string text;
  for (const auto& [name, value] : measures) {
    absl::StrAppendFormat(&text, "%s%s %.4f", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

Status Publish(const Measures& measures, int64_t step, SummaryWriter* writer) {
  LogLine line{.event = "evaluated",
               .text = StrCat("evaluation at step ", step, ": ", Describe(measures)),
               .fields = {{"step", step}}};
  for (const auto& [name, value] : measures) line.fields.push_back({name, value});
  Log(line);
  return writer == nullptr ? OkStatus() : writer->AddScalars(measures, step);
}

}  // namespace

StatusOr<Measures> EvaluateMeans(Session& session, const EvaluationInput& input) {
  std::vector<TensorRef> fetches;
  for (const auto& [name, output] : input.measures) fetches.push_back(output);
  ASSIGN_OR_RETURN(const Callable measure,
                   session.MakeCallable({input.inputs.begin(), input.inputs.end()}, fetches));
  Measures sums;
  double examples = 0;
  for (int64_t number = 0;; ++number) {
    const auto batch = input.batch(number);
    if (absl::IsOutOfRange(batch.status())) break;
    RETURN_IF_ERROR(batch.status());
    if (batch->empty() || batch->front().rank() == 0) {
      return InvalidArgument("evaluation: batch ", number, " has no first dimension to count");
    }
    const auto count = static_cast<double>(batch->front().dim(0));
    ASSIGN_OR_RETURN(const std::vector<Tensor> values, measure(*batch));
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string& name = input.measures[i].first;
      ASSIGN_OR_RETURN(const double mean, NumberOf(name, values[i]));
      sums[name] += mean * count;
    }
    examples += count;
  }
  if (examples == 0) return InvalidArgument("evaluation: the input has no examples");
  for (auto& [name, sum] : sums) sum /= examples;
  return sums;
}

EvaluationHook::EvaluationHook(Evaluate evaluate, const Options& options)
    : evaluate_(std::move(evaluate)), options_(options) {}

Status EvaluationHook::SessionReady(Session& session, int64_t global_step) {
  session_ = &session;
  due_from_step_ = std::min(global_step, last_step_ < 0 ? global_step : last_step_);
  if (due_from_ns_ == 0) due_from_ns_ = options_.env->NowNanos();
  return OkStatus();
}

Status EvaluationHook::AfterStep(const StepResult& result, bool* stop) {
  const double seconds = static_cast<double>(options_.env->NowNanos() - due_from_ns_) * 1e-9;
  const bool due =
      (options_.every_steps > 0 && result.global_step - due_from_step_ >= options_.every_steps) ||
      (options_.every_seconds > 0 && seconds >= options_.every_seconds);
  return due && session_ != nullptr ? Run(*session_, result.global_step) : OkStatus();
}

Status EvaluationHook::End(Session& session, int64_t global_step) {
  const bool wanted = options_.at_end && last_step_ != global_step;
  RETURN_IF_ERROR(wanted ? Run(session, global_step) : OkStatus());
  if (options_.writer == nullptr) return OkStatus();
  // The writer logs its errors; they do not end the training.
  options_.writer->Flush().IgnoreError();
  return OkStatus();
}

Status EvaluationHook::Run(Session& session, int64_t step) {
  ASSIGN_OR_RETURN(last_, evaluate_(session));
  last_step_ = due_from_step_ = step;
  due_from_ns_ = options_.env->NowNanos();
  return Publish(last_, step, options_.writer);
}

namespace {

// Evaluates the new checkpoints of one folder.
class Follower {
 public:
  Follower(Saver& saver, Session& session, Output global_step, const Evaluate& evaluate,
           const EvaluateCheckpointsOptions& options)
      : saver_(saver),
        session_(session),
        global_step_(global_step),
        evaluate_(evaluate),
        options_(options),
        env_(*options.env) {}

  Status Run() {
    while (options_.last_step == 0 || step_ < options_.last_step) {
      RETURN_IF_ERROR(WaitForNext());
      RETURN_IF_ERROR(EvaluateNewest());
    }
    return OkStatus();
  }

 private:
  // Returns the newest checkpoint that the folder names; "" if there is none.
  std::string Newest() const {
    const auto state = ReadCheckpointState(env_, options_.checkpoint_dir);
    return state.ok() ? state->latest : "";
  }

  Status WaitForNext() {
    const int64_t start = env_.NowNanos();
    while (true) {
      const std::string newest = Newest();
      if (!newest.empty() && newest != seen_) {
        seen_ = newest;
        return OkStatus();
      }
      const double waited = static_cast<double>(env_.NowNanos() - start) * 1e-9;
      if (waited >= options_.wait_seconds) {
        return DeadlineExceeded("no checkpoint newer than '", seen_, "' came to ",
                                options_.checkpoint_dir, " within ", options_.wait_seconds, " s");
      }
      RETURN_IF_ERROR(Sleep(std::min(options_.poll_seconds, options_.wait_seconds - waited)));
    }
  }

  // Sleeps in short intervals, so that a cancellation is noticed.
  Status Sleep(double seconds) {
    const int64_t end = env_.NowNanos() + static_cast<int64_t>(seconds * 1e9);
    while (true) {
      if (options_.cancellation != nullptr && options_.cancellation->cancelled()) {
        return Cancelled("told to end while waiting for a checkpoint in ", options_.checkpoint_dir);
      }
      const int64_t left = end - env_.NowNanos();
      if (left <= 0) return OkStatus();
      env_.SleepForNanos(std::min(left, kSleepNanos));
    }
  }

  Status EvaluateNewest() {
    const auto restored = saver_.RestoreNewestGood(session_, options_.checkpoint_dir);
    // The training may have removed the checkpoint while this function read it.
    if (absl::IsDataLoss(restored.status()) || absl::IsNotFound(restored.status())) {
      Log({.level = LogLevel::kWarning,
           .event = "checkpoint_unreadable",
           .text = StrCat("no checkpoint of ", options_.checkpoint_dir,
                          " can be read now: ", restored.status().message())});
      return OkStatus();
    }
    RETURN_IF_ERROR(restored.status());
    if (restored->prefix.empty()) return OkStatus();
    ASSIGN_OR_RETURN(const Tensor step, session_.Fetch(global_step_));
    if (step.scalar<int64_t>() == step_)
      return OkStatus();  // the newer checkpoint is damaged and was skipped
    step_ = step.scalar<int64_t>();
    ASSIGN_OR_RETURN(const Measures measures, evaluate_(session_));
    RETURN_IF_ERROR(Publish(measures, step_, options_.writer));
    return options_.writer == nullptr ? OkStatus() : options_.writer->Flush();
  }

  Saver& saver_;
  Session& session_;
  const Output global_step_;
  const Evaluate& evaluate_;
  const EvaluateCheckpointsOptions& options_;
  Env& env_;
  std::string seen_;
  int64_t step_ = -1;  // the step of the last evaluated checkpoint
};

}  // namespace

Status EvaluateCheckpoints(Saver& saver, Session& session, Output global_step,
                           const Evaluate& evaluate, const EvaluateCheckpointsOptions& options) {
  return Follower(saver, session, global_step, evaluate, options).Run();
}

}  // namespace penstock::client
