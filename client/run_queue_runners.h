// SPDX-License-Identifier: Apache-2.0
//
// RunQueueRunners: runs the queue runners of a program while a training loop has a session.
//
// At the end of the input the loop ends with OK. The error of a runner becomes the error of the
// step that waits for it: the loop recovers from it, or ends with it.
//
// With `taken`, training that goes on from a checkpoint also goes on in its input. The input begins
// anew with each session; the batches of earlier steps are taken again and dropped. The input has
// to repeat itself (QueueRunners::CheckRepeatable; otherwise the first session ends with an error).
// This costs reading the input up to there, without computing anything.
//
// The number of dropped batches: with `once`, its count of this worker's batches; then every record
// is seen exactly once in each epoch, however many workers are killed (exactly_once.h). Without it,
// the global step; that is exact if this is the only worker, has no concurrent steps, and is not
// killed within a step while a parameter server lives on.
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
