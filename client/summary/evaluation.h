// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a model on data that it is not trained on: once (EvaluateMeans), during a training
// (EvaluationHook), or from the checkpoints of a training in another process (EvaluateCheckpoints).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/program.h"
#include "client/saver.h"
#include "client/session.h"
#include "client/summary/summary_writer.h"
#include "client/training_hook.h"
#include "core/base/cancellation.h"
#include "core/base/env.h"

namespace penstock::client {

// The input of an evaluation, and its measures.
struct EvaluationInput {
  // The tensors of `batch` are fed to these, in order.
  Outputs inputs;
  // Scalars that are means over the examples of a batch: {"accuracy", accuracy}.
  std::vector<std::pair<std::string, Output>> measures;
  // Returns batch `number` = 0, 1, ..., or OutOfRange at the end of the input. The first dimension
  // of the first tensor is the number of examples.
  std::function<StatusOr<std::vector<Tensor>>(int64_t number)> batch;
};
using Measures = std::map<std::string, double>;

// Runs the measures on all batches and returns their means over all examples. InvalidArgument if
// there are no examples.
StatusOr<Measures> EvaluateMeans(Session& session, const EvaluationInput& input);

// Returns the measures of the model with the variables' values in the session.
using Evaluate = std::function<StatusOr<Measures>(Session& session)>;

struct EvaluationHookOptions {
  int64_t every_steps = 0;   // interval in global steps; 0: not by steps
  double every_seconds = 0;  // interval; 0: not by time
  // if true, evaluates at the end of the training, unless the last step was evaluated
  bool at_end = true;
  SummaryWriter* writer = nullptr;  // borrowed; null: no summaries
  Env* env = &Env::Real();
};

// Evaluates between steps, on the loop's thread, and logs the result. The steps of other workers go
// on and may change variables meanwhile. An error of `evaluate` is handled like an error of a step:
// if a task was lost (Aborted, Unavailable) the training recovers and evaluates again; other errors
// end the training.
class EvaluationHook : public TrainingHook {
 public:
  using Options = EvaluationHookOptions;
  EvaluationHook(Evaluate evaluate, const Options& options);

  Status SessionReady(Session& session, int64_t global_step) override;
  Status AfterStep(const StepResult& result, bool* stop) override;
  void SessionEnds() override { session_ = nullptr; }
  Status End(Session& session, int64_t global_step) override;

  // Return the measures and the step of the last evaluation; empty and -1 if there was none.
  const Measures& last() const { return last_; }
  int64_t last_step() const { return last_step_; }

 private:
  Status Run(Session& session, int64_t step);

  const Evaluate evaluate_;
  const Options options_;
  Session* session_ = nullptr;
  int64_t due_from_step_ = 0;  // every_steps counts from this step
  int64_t due_from_ns_ = 0;
  Measures last_;
  int64_t last_step_ = -1;
};

struct EvaluateCheckpointsOptions {
  std::string checkpoint_dir;
  double poll_seconds = 5;    // time between checks for a new checkpoint
  double wait_seconds = 600;  // maximum wait for the next checkpoint; then DeadlineExceeded
  // The step at which to stop: returns OK after a checkpoint of this step or a later one. 0: never.
  int64_t last_step = 0;
  SummaryWriter* writer = nullptr;  // borrowed; null: no summaries
  // Cancelling it ends the wait with Cancelled. Borrowed; may be null.
  Cancellation* cancellation = nullptr;
  Env* env = &Env::Real();
};

// Evaluates each new checkpoint of a training in another process. Restores the newest good one into
// `session`, whose program has the saver's variables and the global step, evaluates it, and writes
// the result with the step of the checkpoint. If several checkpoints were written meanwhile, skips
// all but the newest. Blocks.
Status EvaluateCheckpoints(Saver& saver, Session& session, Output global_step,
                           const Evaluate& evaluate, const EvaluateCheckpointsOptions& options);

}  // namespace penstock::client
