// SPDX-License-Identifier: Apache-2.0
//
// ExactlyOnce: each parameter server applies each batch of a training exactly once, even if tasks
// are killed at any moment. Each server counts, for each worker, the batches that the server has
// applied. The counts are a variable, which is saved and restored with the others. So each worker
// resumes at its own position in its own input:
//
//   ExactlyOnce once(program, {.workers = 2, .worker = 1});
//   const Output train = once.Apply(optimizer, optimizer.ComputeGradients(program, loss));
//   RunQueueRunners queues(runners, batch, &once);
//   TrainingLoop loop(program, {.train = train, .once = &once}, options);
//   loop.AddHook(&queues);
//
// All workers' programs must be given the same number of workers, and divide the records among
// them. If one client drives all workers (BuildTowers), it counts as the only worker, and `batch`
// is an op that takes the batches of all towers.
//
// A step computes its gradients concurrently with other workers' steps. When all gradients for one
// server's variables have arrived there, the step applies them and counts the batch. Both happen in
// one commit, which no cancellation interrupts; meanwhile the step holds its worker's mutex on that
// server. The loop initialises, saves and restores the variables of a server with the mutexes of
// all workers held. So variables and counts of a server always belong together.
//
// A step changes nothing, not even the global step, on a server that has already applied its batch.
// That happens if an earlier incarnation of the worker was killed before it reached the other
// servers. If the variables of a server are at an earlier batch (they were restored from a
// checkpoint), the step fails, and the loop makes a new session and resumes at the right batch. If
// only some servers had applied a batch when its worker died, the restarted worker applies it on
// the others, with gradients of the variables' values at that time.
//
// Limits: each variable must be on CPU:0 of a named task, or all variables must be on one device.
// Updates that consist of several ops (Adam's powers, its sparse form) interleave with those of
// other workers, as in any asynchronous training. A worker ends when its input ends. If a server is
// lost after that and restored from an earlier checkpoint, that worker's updates since the
// checkpoint are lost. If the chief dies before the first checkpoint is written, its successor
// starts the training from the beginning.
//
// A training can be resumed with another number of servers with variables, if each worker's last
// batch was applied on all servers at the time of the save. That is so if one client drives all
// workers, or if no other worker trains during the save. With WorkerShare::round_robin, the number
// of workers may differ, too, if in addition the applied batches are the first ones of the whole
// input: all workers had applied equally many, or those before some worker one more. That is so at
// the end of the input. Otherwise the restore fails with InvalidArgument.
//
// Cost: an update waits until all gradients of its server have arrived. The steps of one worker run
// one at a time (TrainingOptions::concurrent_steps == 1).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/optimizer.h"
#include "client/saver_options.h"
#include "client/session.h"

namespace penstock::client {

struct WorkerShare {
  int workers = 1, worker = 0;
  // True if worker w's batches are those with the numbers w, w + workers, w + 2 * workers and so on
  // of an input that does not depend on `workers`. Then a training can be resumed with another
  // number of workers.
  bool round_robin = false;
};

class ExactlyOnce {
 public:
  // Borrows the program. Sets the program's error to InvalidArgument if share.worker is not in [0,
  // workers).
  explicit ExactlyOnce(Program& program, const WorkerShare& share = {},
                       SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns the train op, in place of Optimizer::ApplyGradients. It raises the global step, too.
  // Adds a variable that counts batches to each task that holds the global step or variables with
  // gradients: "batches_taken", or "batches_taken_1_of_2" and so on. Errors of the nodes name the
  // line of the call. Call it once.
  Output Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients,
               SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns an op that gives `variables` their initial values, in place of Program::Initialize. On
  // each task, it assigns them with the mutexes of all workers held, because steps of other workers
  // may still run there. Call it after Apply.
  Output Initialize(const std::vector<Variable>& variables,
                    SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

  // Returns how many batches of this worker have been applied on all servers. The steps of the
  // session continue with the next batch. Call it before the first step of a session.
  // FailedPrecondition if Apply was not called.
  StatusOr<int64_t> Begin(Session& session) const;
  // If `why` says that the variables of a server were restored and are at an earlier batch than the
  // step, returns the error as Aborted, so that the loop makes a new session. Returns any other
  // error unchanged.
  Status Explain(const Status& why) const;
  // Returns the mutexes of all workers, on each task. A step holds its own worker's mutex. Code
  // that must read or change several variables of a task atomically holds all mutexes of that task.
  const Outputs& mutexes() const { return mutexes_; }
  // Sets the options with which a Saver saves and restores the variables consistently: the mutexes,
  // and how the counts of batches are restored. Call it after Apply; this object must outlive the
  // constructor of the Saver.
  void SetUp(SaverOptions* options) const;

 private:
  struct Section;
  struct Decision;
  std::vector<Section> MakeSections(const std::vector<VariableGradient>& gradients) const;
  void AddCount(const Section& section);
  Output ApplyOnTask(const Section& section, int index, Optimizer& optimizer, Outputs tensors,
                     Output position);
  Decision DecideBatch(int index, Output position, const Outputs& lock);
  Output BatchesTaken(const Variable& taken) const;
  void AddBegin();
  Output CountsFromSaved(Output saved, int index) const;
  Output CountsOfWorkers(Output counts, Output workers) const;
  Output DivideInTurn(Output total, Output workers) const;
  Shape CountShape() const;
  Output InitializeLocked(const std::vector<Variable>& variables, const Outputs& mutexes) const;

  Program& program_;
  const WorkerShare share_;
  // A vector. Element 0: the number of batches begun by steps of this session and of earlier ones.
  // Element 1 + i: the number that section i had when the session began.
  std::optional<Variable> position_;
  int sections_ = 0;
  std::vector<Variable> taken_;  // one per section, with a count per worker
  Outputs mutexes_;              // the mutexes of all sections; within each, of all workers
  Output begin_;
  std::set<std::string>
      earlier_checks_;  // names of the nodes that fail if a server is at an earlier batch
};

}  // namespace penstock::client
