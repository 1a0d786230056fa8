// SPDX-License-Identifier: Apache-2.0
#include "client/training.h"

#include <algorithm>
#include <utility>

#include "client/exit_deadline.h"
#include "client/ops/line_scope.h"
#include "client/seconds.h"
#include "client/task_loss.h"
#include "client/training_context.h"
#include "client/training_saves.h"
#include "client/training_session.h"
#include "client/training_steps.h"
#include "client/unsaved_stream.h"

namespace penstock::client {
namespace {

// How long a step may run after a signal before it is cancelled.
constexpr double kGraceSeconds = 5;
// How long a cancelled step may take to end before the process exits.
constexpr double kExitSeconds = 5;

}  // namespace

TrainingLoop::TrainingLoop(Program& program, TrainingStep step, TrainingOptions options,
                           SourceLine line)
    : context_([&] {
        const CallerLine source(program, line);
        return std::make_unique<TrainingContext>(program, std::move(step), std::move(options));
      }()) {
  const CallerLine source(program, line);
  const auto names = program.NameScope("training");
  context_->read_step = program.GlobalStep().Read();
  TrainingSession::Nodes nodes = TrainingSession::AddNodes(*context_);
  saves_ = std::make_unique<TrainingSaves>(*context_);
  if (context_->options.group != nullptr) context_->hooks.push_back(context_->options.group);
  steps_ = std::make_unique<TrainingSteps>(*context_, *saves_);
  session_ = std::make_unique<TrainingSession>(*context_, std::move(nodes), *saves_, *steps_);
}

TrainingLoop::~TrainingLoop() = default;

void TrainingLoop::AddHook(TrainingHook* hook) { context_->hooks.push_back(hook); }
void TrainingLoop::RequestStop() { context_->stop_requested.store(true); }
int64_t TrainingLoop::global_step() const { return context_->global_step; }
Session& TrainingLoop::session() { return session_->session(); }

// Arms exit_deadline_: the process exits if its steps do not end within kExitSeconds after the
// signal's grace period.
void TrainingLoop::ExitAfterGrace() {
  Cancellation::Token token;
  const bool registered = context_->signal->cancellation().Register(
      [this](const Status&) {
        exit_deadline_ = std::make_unique<ExitDeadline>(
            kExitSeconds, nullptr, *context_->options.env, *context_->options.scheduler);
      },
      &token);
  if (registered) exit_token_ = token;
}

// Disarms ExitAfterGrace: no step runs any more, and saving has no such limit.
void TrainingLoop::EndForcedExit() {
  if (exit_token_.has_value()) context_->signal->cancellation().Deregister(*exit_token_);
  exit_token_.reset();
  exit_deadline_.reset();
}

// Returns InvalidArgument if an option is out of its range or contradicts the step.
Status TrainingLoop::CheckOptions() const {
  const TrainingStep& step = context_->step;
  const TrainingOptions& options = context_->options;
  if (step.once != nullptr && options.concurrent_steps > 1) {
    return InvalidArgument(
        "concurrent_steps=", options.concurrent_steps,
        ": with ExactlyOnce a worker's steps come one after the other: set it to 1");
  }
  if (options.agree.valid() && options.concurrent_steps > 1) {
    return InvalidArgument(
        "concurrent_steps=", options.concurrent_steps,
        ": replicas that average their gradients take one step at a time: ", "set it to 1");
  }
  RETURN_IF_ERROR(CheckGroup());
  RETURN_IF_ERROR(CheckDeterministic());
  if (options.max_failed_saves_in_a_row < 0) {
    return InvalidArgument("max_failed_saves_in_a_row=", options.max_failed_saves_in_a_row,
                           ": expected 0, for no limit, or more");
  }
  const bool has_loss =
      std::any_of(step.measures.begin(), step.measures.end(),
                  [&step](const auto& measure) { return measure.first == step.loss; });
  if (!has_loss && step.loss != TrainingStep().loss) {
    return InvalidArgument("TrainingStep::loss: there is no measure '", step.loss, "'");
  }
  return OkStatus();
}

// Returns InvalidArgument if TrainingOptions::group is set and another option contradicts it.
Status TrainingLoop::CheckGroup() const {
  const TrainingOptions& options = context_->options;
  if (options.group == nullptr) return OkStatus();
  const struct {
    bool wrong;
    const char* text;
  } mistakes[] = {
      {!options.agree.valid(), "needs `agree`, the result of CollectiveReplicas::Agree"},
      {options.target.empty(), "needs a cluster; set `target`"},
      {options.new_session != nullptr, "makes its sessions itself; leave new_session out"},
      {!options.session.device_filters.empty(),
       "chooses the tasks of its sessions; leave device_filters out"},
      {context_->step.once != nullptr, "replicas hold all variables; leave ExactlyOnce out"},
      {!(options.last_save_seconds >= 1), "last_save_seconds must be 1 or more"},
  };
  for (const auto& mistake : mistakes) {
    if (mistake.wrong) return InvalidArgument("TrainingOptions::group: ", mistake.text);
  }
  return OkStatus();
}

// InvalidArgument if the training must be deterministic, but cannot be.
Status TrainingLoop::CheckDeterministic() const {
  const TrainingOptions& options = context_->options;
  if (!options.deterministic) return OkStatus();
  const bool replicas = options.agree.valid();
  const struct {
    bool wrong;
    const char* text;
  } mistakes[] = {
      {options.checkpoint_dir.empty(),
       "goes back to a checkpoint after a failure; set checkpoint_dir"},
      {!replicas && context_->step.once == nullptr,
       "the late update of a failed step must not count; use ExactlyOnce, and set "
       "TrainingStep::once"},
      {!replicas && !options.is_chief,
       "the result depends on the speed of workers that train by themselves; let the chief take "
       "all steps (BuildTowers)"},
      {options.group != nullptr,
       "the result depends on which members the group has; leave `group` out"},
  };
  for (const auto& mistake : mistakes) {
    if (mistake.wrong) return InvalidArgument("TrainingOptions::deterministic: ", mistake.text);
  }
  const std::string random = FindUnsavedStream(context_->program, context_->step.train);
  if (random.empty()) return OkStatus();
  return InvalidArgument(
      "TrainingOptions::deterministic: ", random,
      " draws from a stream whose position no checkpoint contains, so a training that goes back "
      "would draw other numbers; use a stateless op, such as StatelessRandomUniformV2, whose seed "
      "is made of the global step");
}

Status TrainingLoop::Run() {
  RETURN_IF_ERROR(CheckOptions());
  if (context_->options.stop_on_signals) {
    context_->signal = std::make_unique<StopSignal>(kGraceSeconds, *context_->options.env,
                                                    *context_->options.scheduler);
    ExitAfterGrace();
  }
  Status status = Train();
  // Completes a running save, so that a checkpoint has the state before an error.
  if (!context_->stopping()) saves_->FinishOrCancel();
  AbandonSavesAndSteps();
  session_->End();
  if (context_->options.group != nullptr) context_->options.group->Retire();
  EndForcedExit();
  context_->signal.reset();
  return status;
}

Status TrainingLoop::Train() {
  Status status = TrainToEnd(Begin());
  // If a task is lost before the final save, steps may be lost with it, so the loop trains again.
  while (IsTaskLoss(status) && ended_ && !context_->stopping()) {
    if (context_->signal != nullptr) ExitAfterGrace();
    status = TrainToEnd(status);
  }
  if (!status.ok() && context_->all_steps_taken && !saves_->HasNewest()) {
    return Annotate(status, StrCat("all steps were taken, but the last checkpoint, of step ",
                                   context_->global_step, ", was not saved"));
  }
  return status;
}

// Trains until the training ends. `status` is the result of making a session or of the last step.
// Then ends the steps under way and, if there was no error, calls End.
Status TrainingLoop::TrainToEnd(Status status) {
  ended_ = false;
  while (true) {
    if (IsTaskLoss(status)) {
      if (++failures_in_a_row_ > context_->options.max_failures_in_a_row) {
        return Annotate(status, StrCat("gave up after ", failures_in_a_row_,
                                       " failures without a step between them"));
      }
      status = Recover(status);
      if (session_->others_have_ended()) {
        ended_ = true;
        return EndHooks();
      }
      context_->all_steps_taken &= !status.ok();
      continue;
    }
    TrainingGroup* const group = context_->options.group;
    if (group != nullptr && absl::IsOutOfRange(status) && !group->ends()) {
      // The next Join tells the other members that the data have ended, so that they end, too.
      group->NoteEndOfData();
      status = Begin();
      continue;
    }
    const bool finished =
        context_->options.max_steps > 0 && context_->global_step >= context_->options.max_steps;
    if (!status.ok() || finished || context_->stopping()) break;
    status = group != nullptr && group->ends() ? OutOfRange("the data of a worker have ended")
                                               : steps_->Run();
    if (!status.ok()) continue;
    failures_in_a_row_ = 0;
    status = saves_->SaveIfDue(session());
  }
  if (context_->options.agree.valid() && absl::IsOutOfRange(status)) {
    context_->Say(LogLevel::kInfo, "training_ends",
                  StrCat("ends after step ", context_->global_step, ": ", status.message()));
  }
  // Returns whether this is a normal end: OK, the end of the data, or a wait or step that a signal
  // has cancelled.
  const auto is_normal_end = [this](const Status& s) {
    return s.ok() || absl::IsOutOfRange(s) || (context_->stopping() && absl::IsCancelled(s));
  };
  step_cut_off_ = absl::IsCancelled(status);
  while (is_normal_end(status) && steps_->under_way()) {
    const Status ended = steps_->Finish();
    step_cut_off_ |= absl::IsCancelled(ended);
    if (!is_normal_end(ended)) status = ended;
  }
  if (!is_normal_end(status)) return status;
  EndForcedExit();
  ended_ = true;
  return steps_->prepared() ? End() : OkStatus();
}

// Makes a session in which steps can run, and calls SessionBegins of the hooks.
Status TrainingLoop::Begin() {
  AbandonSavesAndSteps();
  RETURN_IF_ERROR(session_->Connect());
  hooks_begun_ = 0;
  const HookSession begun{.session = session(),
                          .global_step = context_->global_step,
                          .run = context_->StepOptions(),
                          .stopping = [this] { return context_->stopping(); }};
  for (TrainingHook* hook : context_->hooks) {
    const Status status = hook->SessionBegins(begun);
    if (status.ok() || absl::IsCancelled(status)) ++hooks_begun_;
    RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

// Cancels a running save, and drops steps under way. There are any only after an error, so their
// results are not needed.
void TrainingLoop::AbandonSavesAndSteps() {
  saves_->Cancel();
  steps_->Abandon();
}

Status TrainingLoop::Recover(const Status& failure) {
  context_->Say(LogLevel::kWarning, "step_failed",
                StrCat("step after ", context_->global_step, " failed: ", failure.message(),
                       "; making a new session"));
  RETURN_IF_ERROR(Begin());
  context_->Say(LogLevel::kInfo, "resumed", StrCat("going on at step ", context_->global_step));
  return OkStatus();
}

// Returns whether to save the last step. A worker that was told to stop while it looked for members
// of its group must not save values of several steps, or replace a later checkpoint of the others
// as the newest one.
bool TrainingLoop::MaySaveLast() const {
  TrainingGroup* const group = context_->options.group;
  if (group == nullptr || group->is_member()) return true;
  return !saves_->HasNewest() && group->HasValues(session_->session());
}

// Called instead of SaveLast when a deterministic training ends with a cancelled step: the step may
// have been applied in part. A running save may complete, because its values are those before it.
void TrainingLoop::SkipLastSave() {
  saves_->FinishOrCancel();
  if (!context_->is_chief() || saves_->HasNewest()) return;
  context_->Say(LogLevel::kWarning, "not_saved",
                StrCat("step ", context_->global_step,
                       " is not saved: the step after it was cancelled, and may have been "
                       "applied on some tasks only"));
}

Status TrainingLoop::End() {
  if (context_->options.deterministic && step_cut_off_) {
    SkipLastSave();
  } else if (MaySaveLast()) {
    RETURN_IF_ERROR(saves_->SaveLast(session()));
  }
  RETURN_IF_ERROR(AwaitLastSave());
  return EndHooks();
}

// Waits until the chief of the group has saved, if all members end after this step. A worker that
// is told to stop ends alone.
Status TrainingLoop::AwaitLastSave() {
  const TrainingOptions& options = context_->options;
  const bool finished = options.max_steps > 0 && context_->global_step >= options.max_steps;
  if (options.group == nullptr || saves_->saver() == nullptr || context_->stopping() ||
      !(finished || options.group->ends())) {
    return OkStatus();
  }
  context_->all_steps_taken = true;
  RunOptions run = context_->StepOptions();
  run.timeout_ms = Millis(options.last_save_seconds);
  const Status saved = options.group->AwaitLastSave(session(), run);
  if (context_->stopping() && absl::IsCancelled(saved)) return OkStatus();
  if (IsTaskLoss(saved) && session_->AskWhetherOthersHaveEnded()) return session_->ConnectAlone();
  return saved;
}

// Calls End of the hooks that have begun: a training that is told to end while a hook begins does
// not begin the later ones.
Status TrainingLoop::EndHooks() {
  for (size_t i = 0; i < hooks_begun_; ++i) {
    RETURN_IF_ERROR(context_->hooks[i]->End(session(), context_->global_step));
  }
  return OkStatus();
}

}  // namespace penstock::client
