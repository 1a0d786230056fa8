// SPDX-License-Identifier: Apache-2.0
#include "client/training_saves.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/task_loss.h"
#include "core/base/error_origin.h"
#include "core/checkpoint/checkpoint_state.h"

namespace penstock::client {
namespace {

// While an object of this class exists, the threads of hooks do not update variables (HoldUpdates).
class HeldUpdates {
 public:
  explicit HeldUpdates(const std::vector<TrainingHook*>& hooks) : hooks_(hooks) {
    for (TrainingHook* hook : hooks_) hook->HoldUpdates();
  }
  ~HeldUpdates() {
    for (TrainingHook* hook : hooks_) hook->ReleaseUpdates();
  }
  HeldUpdates(const HeldUpdates&) = delete;
  HeldUpdates& operator=(const HeldUpdates&) = delete;

 private:
  const std::vector<TrainingHook*>& hooks_;
};

}  // namespace

TrainingSaves::TrainingSaves(TrainingContext& context) : context_(context) {
  const TrainingOptions& options = context.options;
  if (options.checkpoint_dir.empty()) return;
  const ExactlyOnce* const once = context.step.once;
  const bool may_save = options.is_chief || options.group != nullptr;
  SaverOptions saver{.keep = options.keep_checkpoints,
                     .keep_every_hours = options.keep_checkpoint_every_hours,
                     .incremental = options.incremental_saves,
                     .background = may_save && options.save_in_background,
                     .bytes_per_second = options.save_bytes_per_second,
                     .finite_only = options.stop_on_nan,
                     .env = options.env};
  if (once != nullptr) once->SetUp(&saver);
  saver_.emplace(context.program, context.shared, saver);
}

Status TrainingSaves::RestoreNewest(Session& session, bool* restored) {
  if (!saver_) return OkStatus();
  ASSIGN_OR_RETURN(const NewestGood found,
                   saver_->RestoreNewestGood(session, context_.options.checkpoint_dir));
  for (const auto& skipped : found.skipped) {
    context_.Say(LogLevel::kWarning, "checkpoint_skipped",
                 StrCat("passed over checkpoint ", skipped.prefix, ": ", skipped.why.message()));
  }
  if (found.prefix.empty()) return OkStatus();
  *restored = true;
  context_.Say(LogLevel::kInfo, "restored", StrCat("restored ", found.prefix));
  saved_ns_ = context_.options.env->NowNanos();
  ASSIGN_OR_RETURN(saved_step_, context_.FetchStep(session));
  last_save_step_ = saved_step_;
  return OkStatus();
}

Status TrainingSaves::SaveFirst(Session& session) {
  return saver_ ? FilterError(Save(session)) : OkStatus();
}

Status TrainingSaves::SaveIfDue(Session& session) {
  const TrainingOptions& options = context_.options;
  if (!saver_ || !context_.is_chief()) return OkStatus();
  if (saving_ != nullptr && saving_->Advance()) RETURN_IF_ERROR(EndBackgroundSave());
  if (saving_ != nullptr || !IsDue()) return OkStatus();
  if (!options.save_in_background) return FilterError(Save(session));
  saved_ns_ = options.env->NowNanos();
  last_save_step_ = context_.global_step;
  const auto take_snapshot = [this, &session](const std::string& name,
                                              const RunOptions& run) -> StatusOr<int64_t> {
    const HeldUpdates held(context_.hooks);
    RETURN_IF_ERROR(saver_->TakeSnapshot(session, name, run));
    return context_.FetchStep(session);
  };
  saving_ = std::make_unique<BackgroundSave>(*saver_, session, Prefix(), take_snapshot,
                                             *options.env, *options.scheduler);
  return OkStatus();
}

bool TrainingSaves::IsDue() const {
  const TrainingOptions& options = context_.options;
  const double seconds = (options.env->NowNanos() - saved_ns_) * 1e-9;
  return (options.save_every_steps > 0 &&
          context_.global_step - last_save_step_ >= options.save_every_steps) ||
         (options.save_every_seconds > 0 && seconds >= options.save_every_seconds);
}

Status TrainingSaves::Save(Session& session) {
  const HeldUpdates held(context_.hooks);
  ASSIGN_OR_RETURN(const int64_t step, context_.FetchStep(session));
  last_save_step_ = step;
  RETURN_IF_ERROR(Saved(saver_->Save(session, Prefix(), step), step));
  saved_ns_ = context_.options.env->NowNanos();
  return OkStatus();
}

// Waits for the running save and records its result. Returns an error as FilterError does.
Status TrainingSaves::EndBackgroundSave() {
  StatusOr<std::string> checkpoint = saving_->Wait();
  const int64_t step = saving_->step();
  saving_.reset();
  return FilterError(Saved(std::move(checkpoint), step));
}

void TrainingSaves::FinishOrCancel() {
  if (saving_ != nullptr && saving_->has_snapshot()) {
    const Status saved = EndBackgroundSave();
    if (!saved.ok()) {
      context_.Say(LogLevel::kError, "not_saved", StrCat("NOT SAVED: ", saved.message()));
    }
  }
  saving_.reset();
}

// Records a complete save and calls AfterSave of the hooks. Returns the error of a failed save; if
// a value was not finite, the error names the last checkpoint, too.
Status TrainingSaves::Saved(StatusOr<std::string> checkpoint, int64_t step) {
  const Status& saved = checkpoint.status();
  if (saver_->IsNonFinite(saved)) {
    return WithMessage(saved,
                       StrCat(saved.message(), SavedUpToText(),
                              ". stop_on_nan = false in TrainingOptions saves it all the same"));
  }
  RETURN_IF_ERROR(saved);
  saved_step_ = step;
  last_save_step_ = std::max(last_save_step_, step);
  failed_saves_ = 0;
  if (!context_.options.say) {
    Log({.event = "checkpoint",
         .text = StrCat("saved ", *checkpoint),
         .fields = {{"step", step}, {"checkpoint", *checkpoint}}});
  }
  for (TrainingHook* hook : context_.hooks) hook->AfterSave(*checkpoint, step);
  return OkStatus();
}

// Returns errors that end the training or require a new session. Logs other errors and returns OK,
// or FailedPrecondition after max_failed_saves_in_a_row of them.
Status TrainingSaves::FilterError(const Status& saved) {
  if (saved.ok() || IsTaskLoss(saved) || saver_->IsNonFinite(saved)) return saved;
  // A full disk should not end the training, because the next save may succeed.
  const std::string why = StrCat(saved.message(), "; ", LastCheckpoint());
  context_.Say(LogLevel::kError, "not_saved", StrCat("NOT SAVED: ", why));
  saved_ns_ = context_.options.env->NowNanos();
  const int most = context_.options.max_failed_saves_in_a_row;
  if (++failed_saves_ < most || most == 0) return OkStatus();
  return FailedPrecondition("gave up after ", failed_saves_,
                            " saves in a row that have failed (max_failed_saves_in_a_row): ", why);
}

std::string TrainingSaves::SavedUpToText() const {
  if (!saver_ || !context_.is_chief() || saved_step_ < 0) return "";
  return StrCat("; ", LastCheckpoint());
}

std::string TrainingSaves::LastCheckpoint() const {
  if (saved_step_ < 0) return "there is no checkpoint yet";
  return StrCat("the last checkpoint is of step ", saved_step_);
}

bool TrainingSaves::HasNewest() const {
  if (!saver_) return false;
  const auto state = ReadCheckpointState(*context_.options.env, context_.options.checkpoint_dir);
  if (!state.ok()) return false;
  const size_t dash = state->latest.rfind('-');
  int64_t step = 0;
  return dash != std::string::npos && absl::SimpleAtoi(state->latest.substr(dash + 1), &step) &&
         step >= context_.global_step;
}

Status TrainingSaves::SaveLast(Session& session) {
  if (saving_ != nullptr && saving_->has_snapshot() &&
      (saving_->step() == context_.global_step || !context_.stopping())) {
    const Status saved = EndBackgroundSave();
    if (!saved.ok() && !IsTaskLoss(saved)) return saved;
  }
  saving_.reset();
  const bool saves = saver_ && context_.is_chief();
  return saves && saved_step_ != context_.global_step ? Save(session) : OkStatus();
}

}  // namespace penstock::client
