// SPDX-License-Identifier: Apache-2.0
//
// ExactlyOnce: has each batch of a training applied once, as a whole, whichever of its tasks are
// killed, and when. It counts the batches that each worker's steps have applied, in a variable that
// is saved and restored with the others, so that each goes on at its own place in its own input:
//
//   const ExactlyOnce once(program, {.workers = 2, .worker = 1});
//   const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, loss));
//   RunQueueRunners queues(runners, batch, &once);
//   TrainingLoop loop(program, {.train = train, .once = &once}, options);
//   loop.AddHook(&queues);
//
// All workers' programs are made with the same number of workers, and share the records out among
// them. Where one client drives all of them (BuildTowers) it is the only worker, and `batch` an op
// that takes the batches of all towers.
//
// A step computes and applies its gradients as ever, beside other workers' steps. When all have
// arrived beside the variables, it applies them and counts the batch: in one go, which no
// cancellation interrupts, and for which it holds its worker's mutex. The loop takes and restores
// checkpoints with the mutexes of all workers. So with one parameter server variables and counts
// always belong together. A step that begins at another
// batch than the variables are at (they were restored from a checkpoint, or an earlier life of the
// worker has applied it already) changes nothing: the loop makes a new session and goes on at the
// right place.
//
// With several parameter servers, where a worker is killed while its gradients are being applied,
// some may have applied them and others not; that one batch is then applied again. Checkpoints
// belong together here, too, but for such a batch.
//
// What it costs: an update waits until all gradients have arrived. Steps of one worker come one
// after the other (TrainingOptions::concurrent_steps == 1). A training is resumed with as many
// workers as it was saved with. Hyperparameters that are tensors are computed beside variables.
#pragma once

#include <string>
#include <vector>

#include "client/optimizer.h"
#include "client/session.h"

namespace penstock::client {

struct WorkerShare {
  int workers = 1, worker = 0;
};

class ExactlyOnce {
 public:
  // Borrows the program; adds the variable "batches_taken". The program's error: InvalidArgument
  // where share.worker is none of the workers.
  explicit ExactlyOnce(Program& program, const WorkerShare& share = {});

  // The train op: what Optimizer::ApplyGradients is to others. Raises the global step, too.
  Output Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients) const;

  // Before the first step of a session: how many batches of this worker have been applied.
  StatusOr<int64_t> Begin(Session& session) const;
  // Aborted where `why` says that a step began at another batch than the variables are at.
  Status Explain(const Status& why) const;
  // By worker. A step holds its worker's; who changes or reads several variables as one, all.
  const Outputs& mutexes() const { return mutexes_; }

 private:
  Output Check(Output position, Output lock) const;
  Output Taken() const;

  Program& program_;
  const WorkerShare share_;
  const Variable taken_;     // by worker
  const Variable position_;  // the batches that steps of this session have taken
  Outputs mutexes_;
  Output begin_;
};

}  // namespace penstock::client
