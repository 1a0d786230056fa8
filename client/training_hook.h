// SPDX-License-Identifier: Apache-2.0
//
// TrainingHook: what a training loop calls around its steps; and the hooks that most programs want.
//
// An error of a hook ends the loop with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "client/progress.h"
#include "client/session.h"

namespace penstock::client {

struct StepResult {
  int64_t global_step = 0;                 // after this step
  std::map<std::string, double> measures;  // by the names given to the loop
};

class TrainingHook {
 public:
  virtual ~TrainingHook() = default;
  // A session is ready and the variables have values: at the start and after each recovery.
  virtual Status SessionReady(Session& session, int64_t global_step) { return OkStatus(); }
  virtual Status BeforeStep(int64_t global_step) { return OkStatus(); }
  // Setting `*stop` ends the loop in good order.
  virtual Status AfterStep(const StepResult& result, bool* stop) { return OkStatus(); }
  // A checkpoint is complete, which shows the variables as they were at `global_step`. Steps may
  // have been taken since, if it was saved in the background.
  virtual void AfterSave(const std::string& checkpoint, int64_t global_step) {}
  // Between these two a snapshot of the variables is taken: a hook that changes them on threads of
  // its own waits.
  virtual void HoldUpdates() {}
  virtual void ReleaseUpdates() {}
  // A step has failed, by an error or the end of the data. Returns `why`, or what the hook knows to
  // be the cause of it.
  virtual Status StepFailed(const Status& why) { return why; }
  // The session is about to go, for good or for a new one: nothing of the hook's may use it any
  // more.
  virtual void SessionEnds() {}
  // The loop has ended in good order. Called again if a task was lost meanwhile (Aborted,
  // Unavailable): the loop makes a new session then, and takes again the steps that were lost.
  virtual Status End(Session& session, int64_t global_step) { return OkStatus(); }
};

// Ends the loop when the global step reaches `last_step`.
class StopAtStep : public TrainingHook {
 public:
  explicit StopAtStep(int64_t last_step) : last_step_(last_step) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    if (result.global_step >= last_step_) *stop = true;
    return OkStatus();
  }

 private:
  const int64_t last_step_;
};

// Shows how training gets on.
class ShowProgress : public TrainingHook {
 public:
  explicit ShowProgress(Progress& progress) : progress_(progress) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    progress_.Step(result.global_step, result.measures);
    return OkStatus();
  }
  Status End(Session& session, int64_t global_step) override {
    progress_.Finish();
    return OkStatus();
  }

 private:
  Progress& progress_;
};

}  // namespace penstock::client
