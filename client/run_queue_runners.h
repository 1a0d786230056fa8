// SPDX-License-Identifier: Apache-2.0
//
// RunQueueRunners: runs the queue runners of a program while a training loop has a session.
//
// At the end of the input the loop ends with OK. If a runner fails, the step that waits for its
// queue fails with the same error, and the loop recovers or ends as after any error of a step.
//
// With `taken`, a training that is resumed from a checkpoint also resumes at its position in the
// input. Each session starts the input from the beginning, and takes and drops the batches of
// earlier steps. The input must be the same in each session (QueueRunners::CheckRepeatable);
// otherwise the first session ends with an error. Resuming costs the time to read the dropped
// batches; the training computes nothing from them.
//
// With `once`, the number of dropped batches is the count of this worker's batches that `once`
// keeps. Then every record is used exactly once in each epoch, even if workers are killed
// (exactly_once.h). Without `once`, the number of dropped batches is the global step. That is exact
// only if this is the only worker, has no concurrent steps, and is not killed within a step while a
// parameter server survives. If the input ends before all batches of earlier steps are dropped, the
// loop ends with FailedPrecondition.
#pragma once

#include <memory>

#include "client/exactly_once.h"
#include "client/queue_runner.h"
#include "client/training_hook.h"

namespace penstock::client {

class RunQueueRunners : public TrainingHook {
 public:
  // Borrows `runners`, `once` and `scheduler`, on whose threads the runners work. `taken` is the
  // batch that each step takes; it must be given if `once` is.
  explicit RunQueueRunners(const QueueRunners& runners, Output taken = {},
                           const ExactlyOnce* once = nullptr,
                           Scheduler& scheduler = Scheduler::Real())
      : runners_(runners), taken_(taken), once_(once), scheduler_(scheduler) {}

  Status SessionReady(Session& session, int64_t global_step) override;
  Status StepFailed(const Status& why) override;
  void SessionEnds() override { coordinator_ = nullptr; }
  Status End(Session& session, int64_t global_step) override { return Stop(); }

 private:
  Status Stop();

  const QueueRunners& runners_;
  const Output taken_;
  const ExactlyOnce* const once_;
  Scheduler& scheduler_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace penstock::client
