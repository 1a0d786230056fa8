// SPDX-License-Identifier: Apache-2.0
//
// TrainingLoop: its outer loop, from the first session to the end of the training. Sessions are
// made in training_sessions.cc, steps run in training_steps.cc, and saves in training_saves.cc.
#include "client/training.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "client/task_loss.h"
#include "core/base/log.h"

namespace penstock::client {
namespace {

// How long a step may run after a signal before it is cancelled.
constexpr double kGraceSeconds = 5;
// How long a cancelled step may take to end before the process exits.
constexpr double kExitSeconds = 5;

}  // namespace

TrainingLoop::TrainingLoop(Program& program, TrainingStep step, TrainingOptions options)
    : program_(program),
      step_(std::move(step)),
      options_(std::move(options)),
      shared_(((void)program.GlobalStep(), program.globals())) {
  const auto names = program.NameScope("training");
  step_read_ = program.GlobalStep().Read();
  initialize_ = program.Initialize(shared_);
  initialize_locals_ = program.Initialize(program.locals(), "init_locals");
  are_initialized_ = program.AreInitialized(shared_);
  if (!options_.checkpoint_dir.empty()) {
    saver_.emplace(
        program, shared_,
        SaverOptions{.keep = options_.keep_checkpoints,
                     .mutexes = step_.once == nullptr ? Outputs() : step_.once->mutexes(),
                     .keep_every_hours = options_.keep_checkpoint_every_hours,
                     .incremental = options_.incremental_saves,
                     .background = options_.is_chief && options_.save_in_background,
                     .bytes_per_second = options_.save_bytes_per_second,
                     .finite_only = options_.stop_on_nan,
                     .env = options_.env});
  }
  const auto after = program.ControlDependencies({step_.train});
  step_after_ = program.GlobalStep().Read();
  step_progress_.emplace(program, step_.train, options_.unchanged_steps_max);
}

TrainingLoop::~TrainingLoop() = default;

bool TrainingLoop::stopping() const {
  return stop_.load() || (signal_ != nullptr && signal_->requested());
}

// Makes the process exit if its steps do not end within kExitSeconds after they were cancelled.
void TrainingLoop::ExitAfterGrace() {
  Cancellation::Token token;
  const bool registered = signal_->cancellation().Register(
      [this](const Status&) {
        exit_deadline_.emplace(kExitSeconds, nullptr, *options_.env, *options_.scheduler);
      },
      &token);
  if (registered) exit_token_ = token;
}

// Disarms ExitAfterGrace: no step runs any more, and saving has no such limit.
void TrainingLoop::EndForcedExit() {
  if (exit_token_.has_value()) signal_->cancellation().Deregister(*exit_token_);
  exit_token_.reset();
  exit_deadline_.reset();
}

void TrainingLoop::Say(LogLevel level, const char* event, const std::string& line) {
  if (options_.say) return options_.say(line);
  Log({.level = level, .event = event, .text = line, .fields = {{"step", global_step_}}});
}

// InvalidArgument if an option is out of its range or does not fit the step.
Status TrainingLoop::CheckOptions() const {
  if (step_.once != nullptr && options_.concurrent_steps > 1) {
    return InvalidArgument("concurrent_steps=", options_.concurrent_steps,
                           ": with ExactlyOnce a worker's steps come one after the other: say 1");
  }
  if (options_.agree.valid() && options_.concurrent_steps > 1) {
    return InvalidArgument(
        "concurrent_steps=", options_.concurrent_steps,
        ": replicas that average their gradients take one step at a time: ", "say 1");
  }
  if (options_.max_failed_saves_in_a_row < 0) {
    return InvalidArgument("max_failed_saves_in_a_row=", options_.max_failed_saves_in_a_row,
                           ": expected 0, for no limit, or more");
  }
  const bool has_loss =
      std::any_of(step_.measures.begin(), step_.measures.end(),
                  [this](const auto& measure) { return measure.first == step_.loss; });
  if (!has_loss && step_.loss != TrainingStep().loss) {
    return InvalidArgument("TrainingStep::loss: there is no measure '", step_.loss, "'");
  }
  return OkStatus();
}

Status TrainingLoop::Run() {
  RETURN_IF_ERROR(CheckOptions());
  if (options_.stop_on_signals) {
    signal_ = std::make_unique<StopSignal>(kGraceSeconds, *options_.env, *options_.scheduler);
    ExitAfterGrace();
  }
  Status status = Train();
  // Completes a save that is running, so that the state before an error is kept.
  if (!stopping()) EndOrGiveUpSave();
  EndSession();
  EndForcedExit();
  signal_.reset();
  return status;
}

Status TrainingLoop::Train() {
  Status status = TrainToEnd(Begin());
  // If a task is lost before the final save, steps may be lost with it: train again.
  while (IsTaskLoss(status) && ended_ && !stopping()) {
    if (signal_ != nullptr) ExitAfterGrace();
    status = TrainToEnd(status);
  }
  return status;
}

// Trains until the training ends, after `status`, the result of making a session or of the last
// step. Then ends the steps under way and, if all went well, calls End.
Status TrainingLoop::TrainToEnd(Status status) {
  ended_ = false;
  while (true) {
    if (IsTaskLoss(status)) {
      if (++failures_in_a_row_ > options_.max_failures_in_a_row) {
        return Annotate(status, StrCat("gave up after ", failures_in_a_row_,
                                       " failures without a step between them"));
      }
      status = Recover(status);
      continue;
    }
    const bool finished = options_.max_steps > 0 && global_step_ >= options_.max_steps;
    if (!status.ok() || finished || stopping()) break;
    status = RunStep();
    if (!status.ok()) continue;
    failures_in_a_row_ = 0;
    status = SaveIfDue();
  }
  if (options_.agree.valid() && absl::IsOutOfRange(status)) {
    Say(LogLevel::kInfo, "training_ends",
        StrCat("ends after step ", global_step_, ": ", status.message()));
  }
  // Returns whether this is a normal end: OK, the end of the data, or a wait or step that a signal
  // has cancelled.
  const auto in_order = [this](const Status& s) {
    return s.ok() || absl::IsOutOfRange(s) || (stopping() && absl::IsCancelled(s));
  };
  while (in_order(status) && !under_way_.empty()) {
    const Status ended = FinishStep();
    if (!in_order(ended)) status = ended;
  }
  if (!in_order(status)) return status;
  EndForcedExit();
  ended_ = true;
  return steps_.empty() ? OkStatus() : End();
}

// Makes a session in which steps can run, and tells the hooks.
Status TrainingLoop::Begin() {
  RETURN_IF_ERROR(Connect());
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->SessionReady(*session_, global_step_));
  return OkStatus();
}

Status TrainingLoop::Recover(const Status& failure) {
  Say(LogLevel::kWarning, "step_failed",
      StrCat("step after ", global_step_, " failed: ", failure.message(),
             "; making a new session"));
  RETURN_IF_ERROR(Begin());
  Say(LogLevel::kInfo, "resumed", StrCat("going on at step ", global_step_));
  return OkStatus();
}

}  // namespace penstock::client
