// SPDX-License-Identifier: Apache-2.0
//
// TrainingSteps: runs the steps of a TrainingLoop. Starts steps, takes their results in the order
// of the starts, passes the results to the hooks, and checks the loss. Private to TrainingLoop.
//
// Only the thread of TrainingLoop::Run calls its functions. Concurrent steps run on the scheduler's
// threads, where they read the options and write to the trace. Borrows the constructor's arguments,
// and the session from Prepare to Forget.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "client/started_step.h"
#include "client/step_progress.h"
#include "client/training_context.h"
#include "client/training_saves.h"

namespace penstock::client {

class TrainingSteps {
 public:
  // Adds the node that reads the global step after the train op.
  TrainingSteps(TrainingContext& context, TrainingSaves& saves);

  // Prepares the step in a new session.
  Status Prepare(Session& session);
  // Forgets the session. REQUIRES: no step is under way.
  void Forget();
  // Returns whether the step was prepared in a session.
  bool prepared() const { return !callables_.empty(); }

  // Starts as many steps as may run, and takes the result of the oldest one.
  Status Run();
  // Returns whether there is a started step whose result was not taken yet.
  bool under_way() const { return !under_way_.empty(); }
  // Waits for the oldest step under way and takes its result. Returns the step's error, or the
  // error that ends the training.
  Status Finish();
  // Drops the steps under way after an error: closes the session, so that they end soon, and waits
  // for them.
  void Abandon();

 private:
  struct HookFetches {
    TrainingHook* hook;
    size_t count;
  };
  struct UnderWay {
    std::vector<Tensor> batch;
    std::vector<HookFetches> wanted;
    StartedStep outputs;
  };
  bool MayStart() const;
  Status Start();
  StatusOr<const Callable*> StepWith(const Outputs& extra);
  Outputs ExtraFetches(int64_t step, std::vector<HookFetches>* wanted) const;
  StatusOr<std::vector<Tensor>> RunTraced(const Callable& callable, int64_t step,
                                          const std::vector<Tensor>& batch, RunOptions run) const;
  void AskForRoads() const;
  void PassExtraFetches(const std::vector<HookFetches>& wanted,
                        const std::vector<Tensor>& outputs) const;
  Status PassResult(const StepResult& result);
  Status CheckLoss(double loss, const std::vector<Tensor>& batch);
  Status NonFiniteLoss(double loss, const std::vector<Tensor>& batch);

  TrainingContext& context_;
  TrainingSaves& saves_;
  Output step_after_;  // the global step after the train op
  StepProgress progress_;
  Session* session_ = nullptr;
  // Prepared steps of session_, by the extra tensors that they fetch. Unless it is empty, it has an
  // entry without extra tensors.
  std::map<std::vector<std::string>, Callable> callables_;
  // Steps that have been started, the oldest first. Their destructors wait until they have ended.
  std::deque<UnderWay> under_way_;
  Status blocked_ = OkStatus();  // the error that prevents further steps from starting
  int64_t next_step_ = 0;        // the lowest number for the next concurrent step
  bool logged_non_finite_ = false;
};

}  // namespace penstock::client
