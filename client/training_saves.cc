// SPDX-License-Identifier: Apache-2.0
//
// The saves of TrainingLoop: when they are due, what happens if one fails, and the last one at the
// end of the training.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/task_loss.h"
#include "client/training.h"
#include "core/base/error_origin.h"
#include "core/base/log.h"

namespace penstock::client {
namespace {

// While an object of this class exists, hooks do not update variables outside steps.
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

Status TrainingLoop::SaveIfDue() {
  if (!saver_ || !options_.is_chief) return OkStatus();
  if (saving_ != nullptr && saving_->Advance()) RETURN_IF_ERROR(EndBackgroundSave());
  if (saving_ != nullptr || !SaveIsDue()) return OkStatus();
  if (!options_.save_in_background) return FilterSaveError(Save());
  saved_ns_ = options_.env->NowNanos();
  last_save_step_ = global_step_;
  const auto take_snapshot = [this](const std::string& name,
                                    const RunOptions& run) -> StatusOr<int64_t> {
    const HeldUpdates held(hooks_);
    RETURN_IF_ERROR(saver_->TakeSnapshot(*session_, name, run));
    return FetchStep();
  };
  saving_ = std::make_unique<BackgroundSave>(*saver_, *session_, CheckpointPrefix(), take_snapshot,
                                             *options_.env, *options_.scheduler);
  return OkStatus();
}

bool TrainingLoop::SaveIsDue() const {
  const double seconds = (options_.env->NowNanos() - saved_ns_) * 1e-9;
  return (options_.save_every_steps > 0 &&
          global_step_ - last_save_step_ >= options_.save_every_steps) ||
         (options_.save_every_seconds > 0 && seconds >= options_.save_every_seconds);
}

Status TrainingLoop::Save() {
  const HeldUpdates held(hooks_);
  ASSIGN_OR_RETURN(const int64_t step, FetchStep());
  last_save_step_ = step;
  RETURN_IF_ERROR(Saved(saver_->Save(*session_, CheckpointPrefix(), step), step));
  saved_ns_ = options_.env->NowNanos();
  return OkStatus();
}

// Waits for the running save and records its result. Returns an error as FilterSaveError does.
Status TrainingLoop::EndBackgroundSave() {
  StatusOr<std::string> checkpoint = saving_->Wait();
  const int64_t step = saving_->step();
  saving_.reset();
  return FilterSaveError(Saved(std::move(checkpoint), step));
}

// Ends a running save before the training ends with an error: waits if the snapshot was taken, else
// cancels the save, because the current values may be bad.
void TrainingLoop::EndOrGiveUpSave() {
  if (saving_ != nullptr && saving_->has_snapshot()) {
    const Status saved = EndBackgroundSave();
    if (!saved.ok()) Say(LogLevel::kError, "not_saved", StrCat("NOT SAVED: ", saved.message()));
  }
  saving_.reset();
}

// Records a complete save and tells the hooks. Returns the error of a failed one; if a value was
// not finite, the error names the last checkpoint, too.
Status TrainingLoop::Saved(StatusOr<std::string> checkpoint, int64_t step) {
  const Status& saved = checkpoint.status();
  if (saver_->IsNonFinite(saved)) {
    return WithMessage(saved,
                       StrCat(saved.message(), NotSavedSince(),
                              ". stop_on_nan = false in TrainingOptions saves it all the same"));
  }
  RETURN_IF_ERROR(saved);
  saved_step_ = step;
  last_save_step_ = std::max(last_save_step_, step);
  failed_saves_ = 0;
  if (!options_.say) {
    Log({.event = "checkpoint",
         .text = StrCat("saved ", *checkpoint),
         .fields = {{"step", step}, {"checkpoint", *checkpoint}}});
  }
  for (TrainingHook* hook : hooks_) hook->AfterSave(*checkpoint, step);
  return OkStatus();
}

// Returns errors that end the training or require a new session. Logs other errors and returns OK,
// or FailedPrecondition after max_failed_saves_in_a_row of them.
Status TrainingLoop::FilterSaveError(const Status& saved) {
  if (saved.ok() || IsTaskLoss(saved) || saver_->IsNonFinite(saved)) return saved;
  // A full disk should not end the training, because the next save may succeed.
  const std::string why = StrCat(saved.message(), "; ", LastCheckpoint());
  Say(LogLevel::kError, "not_saved", StrCat("NOT SAVED: ", why));
  saved_ns_ = options_.env->NowNanos();
  const int most = options_.max_failed_saves_in_a_row;
  if (++failed_saves_ < most || most == 0) return OkStatus();
  return FailedPrecondition("gave up after ", failed_saves_,
                            " saves in a row that have failed (max_failed_saves_in_a_row): ", why);
}

// Returns words, for the end of an error, that name the checkpoint from which training can go on;
// "" if this process knows of none.
std::string TrainingLoop::NotSavedSince() const {
  if (!saver_ || !options_.is_chief || saved_step_ < 0) return "";
  return StrCat("; ", LastCheckpoint());
}

std::string TrainingLoop::LastCheckpoint() const {
  if (saved_step_ < 0) return "there is no checkpoint yet";
  return StrCat("the last checkpoint is of step ", saved_step_);
}

StatusOr<int64_t> TrainingLoop::FetchStep() {
  ASSIGN_OR_RETURN(const Tensor step, session_->Fetch(step_read_));
  return step.scalar<int64_t>();
}

std::string TrainingLoop::CheckpointPrefix() const {
  return options_.checkpoint_dir + "/model.ckpt";
}

Status TrainingLoop::End() {
  // After a signal there may be little time left: then wait only for a save of the last step, and
  // cancel others.
  if (saving_ != nullptr && saving_->has_snapshot() &&
      (saving_->step() == global_step_ || !stopping())) {
    const Status saved = EndBackgroundSave();
    if (!saved.ok() && !IsTaskLoss(saved)) return saved;
  }
  saving_.reset();
  if (saver_ && options_.is_chief && saved_step_ != global_step_) RETURN_IF_ERROR(Save());
  for (TrainingHook* hook : hooks_) RETURN_IF_ERROR(hook->End(*session_, global_step_));
  return OkStatus();
}

}  // namespace penstock::client
