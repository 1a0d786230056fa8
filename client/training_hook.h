// SPDX-License-Identifier: Apache-2.0
//
// TrainingHook: an interface whose functions a training loop calls before and after its steps; and
// the hooks that most programs need.
//
// An error of a hook ends the loop with that error.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/progress.h"
#include "client/session.h"

namespace penstock::client {

struct StepResult {
  int64_t global_step = 0;                 // the global step after this step
  std::map<std::string, double> measures;  // keyed by the names given to the loop
};

// A session in which a training begins or goes on.
struct HookSession {
  Session& session;
  int64_t global_step = 0;
  // The options of steps that a hook runs before the training's steps: the timeout of these, and
  // the cancellation of a signal whose grace period is over.
  RunOptions run = {};
  // Returns whether the training was told to end. Null: never.
  std::function<bool()> stopping = nullptr;
};

class TrainingHook {
 public:
  virtual ~TrainingHook() = default;
  // Called at the start and after each recovery, when a session is ready and the variables have
  // values. A hook that works for more than a moment here overrides SessionBegins instead, and
  // returns Cancelled as soon as `begun.stopping` returns true. `begun` must not be kept after the
  // call.
  virtual Status SessionReady(Session& session, int64_t global_step) { return OkStatus(); }
  virtual Status SessionBegins(const HookSession& begun) {
    return SessionReady(begun.session, begun.global_step);
  }
  virtual Status BeforeStep(int64_t global_step) { return OkStatus(); }
  // Returns tensors that the next step, which begins with `global_step`, has to fetch as well, such
  // as summaries. Each different list of tensors makes another prepared step. The loop calls
  // Fetched with their values before AfterStep, unless the step fails.
  virtual Outputs ExtraFetches(int64_t global_step) { return {}; }
  virtual void Fetched(std::vector<Tensor> values) {}
  // Called after each step. Setting `*stop` ends the loop normally.
  virtual Status AfterStep(const StepResult& result, bool* stop) { return OkStatus(); }
  // Called when a checkpoint is complete. The checkpoint has the variables' values at
  // `global_step`; if it was saved in the background, the training may have taken more steps since
  // then.
  virtual void AfterSave(const std::string& checkpoint, int64_t global_step) {}
  // Called before and after the loop reads the variables for a save: around the snapshot of a
  // background save, else around the complete save. A hook whose own threads change variables must
  // pause these threads between the two calls.
  virtual void HoldUpdates() {}
  virtual void ReleaseUpdates() {}
  // Called when a step has failed, or at the end of the data. Returns `why`, or the error that
  // caused `why` if the hook knows that error.
  virtual Status StepFailed(const Status& why) { return why; }
  // Called before the session is closed or replaced. After this call the hook must not use the
  // session any more.
  virtual void SessionEnds() {}
  // Called when the loop has ended normally, if SessionBegins returned OK or Cancelled. If it
  // returns Aborted or Unavailable because a task was lost, the loop makes a new session, repeats
  // the lost steps, and calls End again.
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

// Prints the training's progress.
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
