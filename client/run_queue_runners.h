// SPDX-License-Identifier: Apache-2.0
//
// RunQueueRunners: has the queue runners of a program at work while a training loop has a session.
//
// The end of the input ends the loop in good order. The error of a runner is the error of the step
// that waited for it: the loop recovers from it, or ends with it.
//
// With `taken`, training that goes on from a checkpoint goes on in its input, too: the input begins
// anew with the session, and what the steps before took is taken again and dropped. The input has
// to repeat itself (QueueRunners::CheckRepeatable; an error of the first session otherwise). It
// costs reading the input up to there, without computing anything.
//
// How much that is: with `once`, what it has counted of this worker's batches; every record is then
// seen exactly once in each epoch, however many workers are killed (exactly_once.h). Without, as
// many batches as the global step says; that is exact if this is the only worker, has no
// concurrent steps, and no parameter server lives on when it is killed within a step.
#pragma once

#include <memory>

#include "client/exactly_once.h"
#include "client/queue_runner.h"
#include "client/training_hook.h"

namespace penstock::client {

class RunQueueRunners : public TrainingHook {
 public:
  // Borrows `runners`, `once` and `scheduler`, on whose threads the runners work. `taken` is the
  // batch that each step takes; `once` needs it.
  explicit RunQueueRunners(const QueueRunners& runners, Output taken = {},
                           const ExactlyOnce* once = nullptr,
                           Scheduler& scheduler = Scheduler::Real())
      : runners_(runners), taken_(taken), once_(once), scheduler_(scheduler) {}

  Status SessionReady(Session& session, int64_t global_step) override;
  Status StepFailed(const Status& why) override;
  void SessionEnds() override { coordinator_ = nullptr; }
  Status End(Session& session, int64_t global_step) override { return Stop(); }

 private:
  Status Skip(Session& session, int64_t global_step);
  Status Stop();

  const QueueRunners& runners_;
  const Output taken_;
  const ExactlyOnce* const once_;
  Scheduler& scheduler_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace penstock::client
