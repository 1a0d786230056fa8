// SPDX-License-Identifier: Apache-2.0
//
// TrainingSaves: saves and restores the checkpoints of a TrainingLoop. Decides when a save is due
// and whether a failed save ends the training. Without a checkpoint directory, all functions do
// nothing. Private to TrainingLoop.
//
// Used by the thread of TrainingLoop::Run only. Borrows the context, and the session from SaveIfDue
// until the save has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/background_save.h"
#include "client/saver.h"
#include "client/training_context.h"

namespace penstock::client {

class TrainingSaves {
 public:
  // Adds the nodes of the Saver to the program.
  explicit TrainingSaves(TrainingContext& context);

  // Returns null if nothing is saved.
  Saver* saver() { return saver_ ? &*saver_ : nullptr; }

  // Restores the newest good checkpoint, and sets `*restored` if there is one.
  Status RestoreNewest(Session& session, bool* restored);
  // Saves the initial values, so that the training can recover if a task is lost before the first
  // save is due.
  Status SaveFirst(Session& session);
  // Call this after each step: begins a save that is due, and takes the result of a running one.
  Status SaveIfDue(Session& session);
  // Saves the last step at the end of the training, unless it is saved already. Waits for a running
  // save, but cancels one of an earlier step if a signal ends the training, because that leaves
  // little time.
  Status SaveLast(Session& session);
  // Returns whether the newest checkpoint in the directory is of the current step or a later one.
  bool HasNewest() const;
  // Ends a running save before the training ends with an error: waits if the snapshot was taken,
  // else cancels the save, because the current values may be bad.
  void FinishOrCancel();
  // Cancels a running save.
  void Cancel() { saving_.reset(); }

  // Returns a text to append to an error: the checkpoint from which training can go on; "" if this
  // worker is not the chief, or there is none yet.
  std::string SavedUpToText() const;

 private:
  bool IsDue() const;
  Status Save(Session& session);
  Status EndBackgroundSave();
  Status Saved(StatusOr<std::string> checkpoint, int64_t step);
  Status FilterError(const Status& saved);
  std::string LastCheckpoint() const;
  std::string Prefix() const { return context_.options.checkpoint_dir + "/model.ckpt"; }

  TrainingContext& context_;
  std::optional<Saver> saver_;
  std::unique_ptr<BackgroundSave> saving_;  // null: no save is running
  int64_t saved_step_ = -1, saved_ns_ = 0;
  int64_t last_save_step_ = -1;  // step of the last save, successful or not
  int failed_saves_ = 0;         // number of failed saves in a row
};

}  // namespace penstock::client
