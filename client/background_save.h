// SPDX-License-Identifier: Apache-2.0
//
// BackgroundSave: saves one checkpoint while the training's steps go on.
//
// The save's thread first copies large variables. Then the training's thread takes the snapshot,
// between two of its steps. So all variables, including the global step and the counts of batches,
// have the values of one moment, provided that no other training changes them. After that, the
// save's thread writes the snapshot.
//
// Only the training's thread may call these functions. Borrows saver and session.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/saver.h"
#include "client/session.h"
#include "core/base/cancellation.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class BackgroundSave {
 public:
  // Takes the snapshot of the save `name`, while no update runs, by Saver::TakeSnapshot. Returns
  // the global step at that moment.
  using TakeSnapshot =
      std::function<StatusOr<int64_t>(const std::string& name, const RunOptions& options)>;
  // Starts the save: its thread begins to copy the large variables. If the saver copies none ahead,
  // takes the snapshot in this call.
  BackgroundSave(Saver& saver, Session& session, std::string prefix, TakeSnapshot take_snapshot,
                 Env& env, Scheduler& scheduler);
  // Cancels the save if it has not ended, and waits until its thread and calls have ended.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // If the large variables have been copied, takes the snapshot and starts to write it. Returns
  // whether the save has ended. Call it between steps. Never waits for the thread.
  bool Advance();
  // Completes the save, blocking until it has ended. Returns the checkpoint's name, or the error
  // with which the save failed.
  StatusOr<std::string> Wait();

  // Returns whether the snapshot was taken, or the save has failed.
  bool has_snapshot() const { return stage_ != Stage::kCopying; }
  // Returns the global step of the snapshot; -1 if none was taken.
  int64_t step() const { return step_; }

 private:
  enum class Stage { kCopying, kWriting, kEnded };
  void Start(std::function<StatusOr<std::string>()> work);
  void TakeSnapshotNow();

  Saver& saver_;
  Session& session_;
  const std::string prefix_, name_;
  const TakeSnapshot take_snapshot_;
  Scheduler& scheduler_;
  Cancellation cancellation_;
  Stage stage_ = Stage::kCopying;
  int64_t step_ = -1;
  // The result of the last function that the thread ran, or the error of the snapshot. When the
  // save has ended: the name of the checkpoint, or an error.
  StatusOr<std::string> result_;
  std::atomic<bool> done_{false};  // set by the thread just before it ends
  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock::client
