// SPDX-License-Identifier: Apache-2.0
//
// ExactlyOnce: has each batch of a training applied once, as a whole, whichever of its tasks are
// killed, and when. It counts the batches that each worker's steps have applied, in a variable that
// is saved and restored with the others, so that each goes on at its own place in its own input:
//
//   ExactlyOnce once(program, {.workers = 2, .worker = 1});
//   const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, loss));
//   RunQueueRunners queues(runners, batch, &once);
//   TrainingLoop loop(program, {.train = train, .once = &once}, options);
//   loop.AddHook(&queues);
//
// All workers' programs are made with the same number of workers, and share the records out among
// them. Where one client drives all of them (BuildTowers) it is the only worker, and `batch` an op
// that takes the batches of all towers.
//
// A step computes its gradients and applies them as ever, beside other workers' steps. On each
// parameter server, when all that its variables need has arrived, the step applies it and counts
// the batch: in one go, which no cancellation interrupts, and for which it holds its worker's mutex
// there. The loop saves and restores the variables of a server with the mutexes of all workers. So
// on each server variables and counts always belong together. Where a batch has been applied
// already (by an earlier life of the worker, which was killed before it had on the other servers),
// a step changes nothing; where the variables are at an earlier batch (they were restored from a
// checkpoint), it fails, and the loop makes a new session and goes on at the right place.
//
// What it costs: an update waits until all gradients of its server have arrived. Steps of one
// worker come one after the other (TrainingOptions::concurrent_steps == 1). A training is resumed
// with as many workers, and its variables on as many servers, as it was saved with. Hyperparameters
// that are tensors are computed beside variables.
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
  // Borrows the program. The program's error: InvalidArgument where share.worker is none of the
  // workers.
  explicit ExactlyOnce(Program& program, const WorkerShare& share = {});

  // The train op: what Optimizer::ApplyGradients is to others. Raises the global step, too. Adds
  // a variable "batches_taken" to each task that holds variables. To be called once, before others
  // of this class.
  Output Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients);

  // Before the first step of a session: how many batches of this worker have been applied
  // everywhere.
  StatusOr<int64_t> Begin(Session& session) const;
  // Aborted where `why` says that a step began at a later batch than the variables are at.
  Status Explain(const Status& why) const;
  // Of all workers, on each task. A step holds its worker's; who changes or reads several variables
  // of a task as one, all that are there.
  const Outputs& mutexes() const { return mutexes_; }

 private:
  struct Section;
  std::vector<Section> Sections(const std::vector<VariableGradient>& gradients) const;
  Output ApplyThere(const Section& section, Optimizer& optimizer, const Outputs& before,
                    Output position);
  Output AddCount();
  Outputs Next(const Variable& taken, Output position, const Outputs& lock) const;
  Output TakenOf(const Variable& taken) const;
  Output Taken() const;

  Program& program_;
  const WorkerShare share_;
  const Variable position_;      // the batches that steps of this session have taken
  std::vector<Variable> taken_;  // by task; by worker
  Outputs mutexes_;
  Output begin_;
};

}  // namespace penstock::client
