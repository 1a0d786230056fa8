// SPDX-License-Identifier: Apache-2.0
//
// TrainingLoop: runs a program's training step repeatedly, in this process or as one worker of a
// cluster. It also initialises, waits for other tasks, saves, recovers from failures and ends the
// training.
//
//   TrainingLoop loop(program, {.train = train, .inputs = {x, y}, .next_batch = ...}, options);
//   RETURN_IF_ERROR(loop.Run());
//
// The chief initialises the variables, or restores the newest good checkpoint, and saves. The other
// workers wait until the variables have values, and print which task they wait for. When a task is
// lost (Aborted, Unavailable), every worker makes a new session as soon as the task is back. The
// chief restores the last checkpoint if variables were lost with the task; otherwise training
// continues with the variables' current values. A step that failed may have applied some of its
// updates, as in any asynchronous training.
//
// Replicas that hold all variables themselves (collective_replicas.h) each initialise their own,
// and then copy the chief's values, at the start and after each failure. After a failure the chief
// restores the last checkpoint first, so that an interrupted training ends with the same bits as an
// uninterrupted one. With TrainingOptions::group, the remaining replicas go on instead, from the
// last step that one of them has taken completely. If one replica ends because its data have ended,
// the others also end normally, and print a message. The replicas of a group end when the chief has
// saved the last checkpoint; if the chief is lost before that, another one saves it.
//
// Training ends with an error if a loss is NaN or infinite (the error names the node or variable
// where it begins), or if the train op never raises the global step.
//
// Steps go on while a checkpoint is written (background_save.h). A checkpoint shows the variables
// between two steps of the chief. If other workers update asynchronously meanwhile, each variable
// is consistent, but two variables may differ by one update. With ExactlyOnce or SyncReplicas, all
// variables of one server are consistent. The loop logs a failed save after the next step and goes
// on, until max_failed_saves_in_a_row.
//
// Every wait is bounded. SIGTERM and SIGINT end the loop after the current step: the chief saves
// and Run returns OK. A step that has not ended 5 s after the signal is cancelled. If a kernel does
// not return, so that the step has still not ended 5 s later, the loop logs what still runs and the
// process exits. Hooks and next_batch are called on the thread of Run. Single-threaded, except for
// RequestStop. Borrows the program; its constructor adds nodes to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/exactly_once.h"
#include "client/program.h"
#include "client/session.h"
#include "client/step_trace.h"
#include "client/training_group.h"
#include "client/training_hook.h"
#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock::client {

class ExitDeadline;
struct TrainingContext;
class TrainingSaves;
class TrainingSession;
class TrainingSteps;

struct TrainingStep {
  // The train op. Must raise the program's global step, as the result of Optimizer::Minimize does.
  // Not every run has to raise it: a run may accumulate gradients, or skip a batch that was already
  // applied. But if the train op has no node that changes the global step, and nothing else raises
  // it (another worker, or the chief's queue runners), the training never ends: see
  // unchanged_steps_max.
  Output train;
  // The tensors of next_batch are fed to these, in order.
  Outputs inputs = {};
  // Returns the next batch, or OutOfRange at the end of the data, which ends the loop. May be null
  // if `inputs` is empty. If a batch depends only on the step, a resumed training gives the same
  // result as one that was never interrupted.
  std::function<StatusOr<std::vector<Tensor>>(int64_t global_step)> next_batch = nullptr;
  // Scalars that hooks see after each step: {"loss", loss}.
  std::vector<std::pair<std::string, Output>> measures = {};
  // The name of the measure that must stay finite: see stop_on_nan. InvalidArgument if no measure
  // has this name, unless it is "loss", the default.
  std::string loss = "loss";
  // Must be set if `train` is the result of ExactlyOnce::Apply. Then each checkpoint shows the
  // variables of each parameter server between two steps.
  const ExactlyOnce* once = nullptr;
};

struct TrainingOptions {
  std::string target = "";  // "" is this process
  SessionOptions session = {};
  bool is_chief = true;
  // If every worker holds all variables itself: the result of CollectiveReplicas::Agree; then
  // concurrent_steps must be 1. If the workers share the variables: not valid (Output::valid).
  Output agree = {};
  // Borrowed; also a hook. If not null, training goes on with the remaining workers when one is
  // lost (elastic_group.h). Needs `agree`. Then the group chooses the chief, and is_chief has no
  // effect; the loop makes sessions with the group's tasks and target (ElasticGroup::Options), so
  // new_session and device filters must not be given. `target` must not be "", but is not used.
  TrainingGroup* group = nullptr;
  // The chief's name, shown by workers that wait for the chief.
  std::string chief = "/job:worker/task:0";

  // "": nothing is saved, and the training ends if variables are lost
  std::string checkpoint_dir = "";
  int64_t save_every_steps = 0;     // interval in global steps; 0: not by steps
  double save_every_seconds = 600;  // interval; 0: not by time
  int keep_checkpoints = 5;
  // In addition, one checkpoint per this many hours is never deleted. 0: none.
  double keep_checkpoint_every_hours = 0;
  // SaverOptions::incremental: up to this many checkpoints in a row hold only the changed rows of
  // dynamic tables.
  int incremental_saves = 0;
  // true: steps go on during a save. At most one save runs at a time; one that becomes due
  // meanwhile starts when the running one has ended. At the end of the training the loop waits for
  // the save. After a signal it cancels a save of an earlier step and saves the current step
  // instead. Needs as much memory as the variables until the checkpoint is written. false: steps
  // wait for each save, and no extra memory is needed.
  bool save_in_background = true;
  // The maximum write rate of a background save on each task; also applies to the last save if it
  // began in the background. 0: no limit.
  int64_t save_bytes_per_second = 0;
  // Ends the training with FailedPrecondition after this many saves in a row that have failed, the
  // first one included. Each failed save is logged and tried again when the next save is due; the
  // checkpoints before it stay. 0: training goes on however many fail. The last save, at the end of
  // the training, must always succeed.
  int max_failed_saves_in_a_row = 0;

  // true: a training that loses tasks ends with the same bits as an undisturbed one. After each
  // failure the chief restores the newest checkpoint, even if no variable was lost, because the
  // failed step may have been applied on some parameter servers only. If there is no checkpoint
  // yet, it initialises the variables again. If a signal cancels a step, nothing is saved after it,
  // and a resumed training goes on from the checkpoint before. One client must take all steps
  // (BuildTowers), or replicas together (`agree`); batches must depend only on their number, and
  // initial values have seeds. InvalidArgument without checkpoint_dir; with `group`; without
  // `agree`, if this worker is not the chief or TrainingStep::once is not set (it makes late
  // updates of a failed step harmless); or if the train op runs a random op whose position in its
  // stream is not saved. Functions that kernels call are not searched for such ops.
  bool deterministic = false;

  int64_t max_steps = 0;  // limit of the global step; 0: no limit
  // Ends the training with FailedPrecondition after this many steps in a row that leave the global
  // step unchanged, if the train op has no node that changes it. A warning is printed earlier. 0:
  // never.
  int64_t unchanged_steps_max = 1000;
  // true: a loss that is NaN or infinite ends the training. The error, InvalidArgument, names the
  // step, the task, and the first node or variable of the step's graph that is not finite. A
  // trainable variable that is not finite when a save is due also ends the training. Nothing is
  // saved in either case, so training can go on from the newest checkpoint. false: training goes
  // on, one line is printed, and such values are saved. (Like TensorFlow's NanTensorHook with
  // fail_on_nan_loss=True. For its other mode write a hook that sets `*stop` in AfterStep.)
  bool stop_on_nan = true;
  // The number of concurrent steps: while one step waits for its variables or its input, another
  // one computes. Concurrent steps update the variables asynchronously, as workers do. Each step
  // gets a different number as its global step.
  int concurrent_steps = 1;
  // Borrowed. Records the steps that its options name, unless they fail; null: records none.
  StepTrace* trace = nullptr;
  // How long to wait for the chief, and for tasks that are lost or have not started.
  double wait_seconds = 600;
  double retry_seconds = 1;  // the wait between two attempts to connect
  // How long one attempt waits for the tasks, before it prints which of them do not answer.
  double connect_seconds = 5;
  // The timeout of each step, each save and each restore.
  double step_seconds = 3600;
  // With `group`: how long the members wait for each other at the end, until the chief has saved
  // the last checkpoint. Must be longer than the longest save; at least 1.
  double last_save_seconds = 6 * 3600;
  // The training ends after more than this many failures without a successful step between them.
  int max_failures_in_a_row = 10;
  // If true, SIGTERM and SIGINT end the training after the current step, and `scheduler` must have
  // real threads.
  bool stop_on_signals = true;
  // Makes a session with the cluster; null: the loop uses `target` and `session`.
  std::function<StatusOr<std::unique_ptr<SessionInterface>>()> new_session = nullptr;
  // Receives the messages for people; null: they go to the log (core/base/log.h), which then also
  // records checkpoints.
  std::function<void(const std::string&)> say = nullptr;
  Env* env = &Env::Real();
  Scheduler* scheduler = &Scheduler::Real();  // must use the clock of `env`
};

class TrainingLoop {
 public:
  // Adds nodes to the program. Errors of these nodes name `line`.
  TrainingLoop(Program& program, TrainingStep step, TrainingOptions options,
               SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  ~TrainingLoop();

  // Adds a hook, which is borrowed. Hooks are called in the order in which they were added.
  void AddHook(TrainingHook* hook);

  // Trains until max_steps, until the end of the data, or until a hook, a signal or RequestStop
  // ends the training; then returns OK. Otherwise returns the error from which it could not
  // recover. REQUIRES: Run is called once.
  Status Run();

  // Ends the loop after the current step. Thread-safe.
  void RequestStop();

  int64_t global_step() const;
  // Returns the session of the last step, for evaluation. With TrainingOptions::group, it is a
  // session with this worker's task only, if the other members had ended before this worker.
  // REQUIRES: Run has returned OK.
  Session& session();

 private:
  Status CheckOptions() const;
  Status CheckGroup() const;
  Status CheckDeterministic() const;
  void ExitAfterGrace();
  void EndForcedExit();
  Status Train();
  Status TrainToEnd(Status status);
  Status Begin();
  void AbandonSavesAndSteps();
  Status Recover(const Status& failure);
  Status End();
  bool MaySaveLast() const;
  void SkipLastSave();
  Status AwaitLastSave();
  Status EndHooks();

  const std::unique_ptr<TrainingContext> context_;
  // Destroyed after the steps and saves, which use the session.
  std::unique_ptr<TrainingSession> session_;
  std::unique_ptr<TrainingSaves> saves_;
  std::unique_ptr<TrainingSteps> steps_;
  // Set when the signal's grace period is over, which cancels the steps: ends the process if the
  // steps have not ended kExitSeconds (training.cc) later. The thread of the signal sets it, so
  // other threads must not access it until EndForcedExit has deregistered exit_token_.
  std::unique_ptr<ExitDeadline> exit_deadline_;
  std::optional<Cancellation::Token> exit_token_;
  bool ended_ = false;         // all steps were taken; only saving and the hooks' End remain
  bool step_cut_off_ = false;  // the last step was cancelled, and may have been applied in part
  size_t hooks_begun_ = 0;     // how many hooks, from the first on, have begun in the last session
  int failures_in_a_row_ = 0;
};

}  // namespace penstock::client
