// SPDX-License-Identifier: Apache-2.0
//
// ExactlyOnce: each parameter server applies each batch of a training exactly once, even if tasks
// are killed at any moment. Each server counts the batches of each worker that it has applied, in a
// variable that is saved and restored with the others. So each worker goes on at its own place in
// its own input:
//
//   ExactlyOnce once(program, {.workers = 2, .worker = 1});
//   const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, loss));
//   RunQueueRunners queues(runners, batch, &once);
//   TrainingLoop loop(program, {.train = train, .once = &once}, options);
//   loop.AddHook(&queues);
//
// All workers' programs are made with the same number of workers, and share the records out among
// them. If one client drives all of them (BuildTowers), it counts as the only worker, and `batch`
// is an op that takes the batches of all towers.
//
// A step computes its gradients as usual, beside other workers' steps. When all gradients for one
// server's variables have arrived there, the step applies them and counts the batch. It does both
// as one commit, which no cancellation interrupts, and holds its worker's mutex on that server
// meanwhile. The loop saves and restores the variables of a server with the mutexes of all workers
// held. So variables and counts of a server always belong together.
//
// A step changes nothing on a server that has applied its batch already (an earlier incarnation of
// the worker was killed before it reached the other servers); the global step stays. If the
// variables of a server are at an earlier batch (they were restored from a checkpoint), the step
// fails, and the loop makes a new session and goes on at the right place. A batch that only some
// servers had applied when its worker died is finished on the others, with gradients of the
// variables as they are then.
//
// Limits: every variable is on CPU:0 of a named task, or all are on one device. Updates that are
// several ops (Adam's powers, its sparse form) mix with those of other workers, as in any
// asynchronous training. A worker whose input has ended leaves: if a server is lost after that and
// goes back to a checkpoint of before, what that worker gave since is lost. Until the first
// checkpoint is written, a chief that dies has its successor begin anew.
//
// Cost: an update waits until all gradients of its server have arrived. Steps of one worker come
// one after the other (TrainingOptions::concurrent_steps == 1). A training is resumed with as many
// workers, and its variables on as many servers, as it was saved with.
#pragma once

#include <optional>
#include <set>
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
  // Borrows the program. The program's error: InvalidArgument if share.worker is none of the
  // workers.
  explicit ExactlyOnce(Program& program, const WorkerShare& share = {});

  // The train op: what Optimizer::ApplyGradients is to others. Raises the global step, too. Adds a
  // count to each task that holds variables with gradients, or the global step: "batches_taken", or
  // "batches_taken_1_of_2" and so on. To be called once.
  Output Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients);

  // Before the first step of a session: how many batches of this worker have been applied
  // everywhere. FailedPrecondition without Apply.
  StatusOr<int64_t> Begin(Session& session) const;
  // Aborted if `why` says that a step began at a later batch than the variables are at.
  Status Explain(const Status& why) const;
  // The mutexes of all workers, on each task. A step holds its worker's. Whatever changes or reads
  // several variables of a task as one holds all of that task.
  const Outputs& mutexes() const { return mutexes_; }

 private:
  struct Section;
  struct Turn;
  std::vector<Section> Sections(const std::vector<VariableGradient>& gradients) const;
  void AddCount(const Section& section, int of);
  Output ApplyThere(const Section& section, int index, Optimizer& optimizer, Outputs tensors,
                    Output position);
  Turn TakeTurn(int index, Output position, const Outputs& lock);
  Output TakenOf(const Variable& taken) const;
  void AddBegin();

  Program& program_;
  const WorkerShare share_;
  // How many batches the steps of this session have taken, with those before it; and how many each
  // section had when it began.
  std::optional<Variable> position_;
  std::vector<Variable> taken_;  // by section; by worker
  Outputs mutexes_;              // by section and worker
  Output begin_;
  std::set<std::string> earlier_checks_;  // nodes that fail if variables are at an earlier batch
};

}  // namespace penstock::client
