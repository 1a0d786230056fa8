// SPDX-License-Identifier: Apache-2.0
//
// RunQueueRunners: has the queue runners of a program at work while a training loop has a session.
//
// The end of the input ends the loop in good order. The error of a runner is the error of the step
// that waited for it: the loop recovers from it, or ends with it.
//
// With `taken`, training that goes on from a checkpoint goes on in its input, too: the input begins
// anew with the session, and what the steps before took is taken again and dropped. So a training
// that was killed sees every record exactly once in each epoch, as one that was not, if no other
// worker and no concurrent step raises the global step. The input has to repeat itself
// (QueueRunners::CheckRepeatable; an error of the first session otherwise). It costs reading the
// input up to there, without computing anything. What a step has done to variables of a task that
// lives on, when it was killed before it raised the global step, is done again.
#pragma once

#include <memory>

#include "client/queue_runner.h"
#include "client/training_hook.h"

namespace penstock::client {

class RunQueueRunners : public TrainingHook {
 public:
  // Borrows `runners`. `taken` is the batch that each step takes.
  explicit RunQueueRunners(const QueueRunners& runners, Output taken = {})
      : runners_(runners), taken_(taken) {}

  Status SessionReady(Session& session, int64_t global_step) override;
  Status StepFailed(const Status& why) override;
  void SessionEnds() override { coordinator_ = nullptr; }
  Status End(Session& session, int64_t global_step) override { return Stop(); }

 private:
  Status Skip(Session& session, int64_t steps);
  Status Stop();

  const QueueRunners& runners_;
  const Output taken_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace penstock::client
