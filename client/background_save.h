// SPDX-License-Identifier: Apache-2.0
//
// BackgroundSave: one save of a training while its steps go on.
//
// A thread copies large variables ahead. Then the training's own thread takes the snapshot, between
// two of its steps: so all variables, the global step and counts of batches among them, are of one
// moment, if this training alone changes them. The thread writes what was taken.
//
// All calls come from the training's thread. Borrows saver and session.
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
  // Runs Saver::Cut under this name while no update runs, and returns the global step of then.
  using Cut = std::function<StatusOr<int64_t>(const std::string& name, const RunOptions& options)>;
  // Begins.
  BackgroundSave(Saver& saver, Session& session, std::string prefix, Cut cut, Env& env,
                 Scheduler& scheduler);
  // Gives up what has not ended, and waits until nothing of it runs.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // To be called between steps: takes the snapshot if it is time. Returns whether the save has
  // ended. Never waits for the thread.
  bool Advance();
  // Goes on until the save has ended; returns the checkpoint.
  StatusOr<std::string> Wait();

  // Whether the snapshot was taken, and at which global step.
  bool cut() const { return stage_ != Stage::kCopying; }
  int64_t step() const { return step_; }

 private:
  enum class Stage { kCopying, kWriting, kEnded };
  void Start(std::function<StatusOr<std::string>()> work);
  void CutNow();

  Saver& saver_;
  Session& session_;
  const std::string prefix_, name_;
  const Cut cut_;
  Scheduler& scheduler_;
  Cancellation cancellation_;
  Stage stage_ = Stage::kCopying;
  int64_t step_ = -1;
  StatusOr<std::string> result_;   // of the thread, once it has ended; at the end the save's
  std::atomic<bool> done_{false};  // the thread's last act
  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock::client
