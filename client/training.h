// SPDX-License-Identifier: Apache-2.0
//
// TrainingLoop: runs a program's training step again and again, on this process or as one worker of
// a cluster, and sees to everything around it: initialising, waiting, saving, recovering, ending.
//
//   TrainingLoop loop(program, {.train = train, .inputs = {x, y}, .next_batch = ...}, options);
//   RETURN_IF_ERROR(loop.Run());
//
// The chief initialises the variables, or restores the newest good checkpoint, and saves. The
// others wait until the variables have values, and say for whom they wait. When a task is lost
// (Aborted, Unavailable) everybody makes a new session as soon as the task is back; the chief
// restores the last checkpoint if variables were lost with it, and goes on where it was otherwise.
// Updates of a step that failed may have been applied in part, as in any asynchronous training.
//
// Replicas that hold all variables themselves (collective_replicas.h) each initialise their own,
// and then take over the chief's, at the start and after each failure; the chief then goes back to
// the last checkpoint, so that a training that was interrupted has the same bits as one that was
// not. If one of them ends, because its data have, the others end in good order, too, and say so.
//
// Training ends with an error if a loss is NaN or infinite (the error names the node or variable
// where it begins), or if the train op never raises the global step.
//
// Steps go on while a checkpoint is written (background_save.h). It shows the variables at a moment
// between two steps of the chief; if other workers update them meanwhile by themselves, each
// variable is whole but some may be an update apart, unless ExactlyOnce or SyncReplicas sees to it
// that those of a server are not. An error of a save is told after the next step.
//
// Every wait is bounded. SIGTERM and SIGINT end the loop after the step: the chief saves and Run
// returns OK. A step that goes on for 5 s is cancelled; one that does not end even so, because a
// kernel does not return, is named after 5 s more, and the process exits. Hooks and next_batch are
// called on the thread of Run. Single-threaded, but for RequestStop. Borrows the program; its
// constructor adds nodes to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/background_save.h"
#include "client/exactly_once.h"
#include "client/exit_deadline.h"
#include "client/program.h"
#include "client/saver.h"
#include "client/background_save.h"
#include "client/session.h"
#include "client/started_step.h"
#include "client/step_progress.h"
#include "client/step_trace.h"
#include "client/stop_signal.h"
#include "client/training_hook.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock::client {

struct TrainingStep {
  // Must raise the program's global step: Optimizer::Minimize does. Not every run of it has to:
  // gradients may be accumulated, or a batch passed over that was applied already. But a train op
  // without any node that changes the global step, in a training where nothing else raises it
  // either (another worker, or the chief's queue runners), never ends: see unchanged_steps_max.
  Output train;
  // The tensors of next_batch are fed to these, in order.
  Outputs inputs = {};
  // OutOfRange: the data have ended, and so does the loop. May be null if nothing is fed. A
  // batch that depends on nothing but the step makes a training that is resumed the same as one
  // that was never interrupted.
  std::function<StatusOr<std::vector<Tensor>>(int64_t global_step)> next_batch = nullptr;
  // Scalars that hooks see after each step: {"loss", loss}.
  std::vector<std::pair<std::string, Output>> measures = {};
  // The measure that must stay finite: see stop_on_nan. InvalidArgument if there is no measure
  // of a name given here; no measure need have the name "loss".
  std::string loss = "loss";
  // Given if `train` is its Apply: then a checkpoint shows each parameter server at a moment
  // between steps.
  const ExactlyOnce* once = nullptr;
};

struct TrainingOptions {
  std::string target = "";  // "" is this process
  SessionOptions session = {};
  bool is_chief = true;
  // CollectiveReplicas::Agree of a program that every worker runs by itself; not valid: variables
  // are shared. concurrent_steps must be 1 then.
  Output agree = {};
  std::string chief = "/job:worker/task:0";  // its name, for those who wait for it

  std::string checkpoint_dir = "";  // "": nothing is saved, and lost variables end the training
  int64_t save_every_steps = 0;     // 0: not by steps
  double save_every_seconds = 600;  // 0: not by time
  int keep_checkpoints = 5;
  // One checkpoint of every so many hours is kept besides, for good. 0: none.
  double keep_checkpoint_every_hours = 0;
  // A save does not stop the training. Never is more than one under way; one that is due meanwhile
  // is begun when it has ended. The end of the training waits for it, a signal gives it up if it is
  // of an earlier step; then what was reached is saved. Costs memory: as much as the variables,
  // until it is written. false: steps wait for each save, and no memory is needed.
  bool save_in_background = true;
  // The most that a save in the background writes in a second on each task, also the last save if
  // it was begun so. 0: no limit.
  int64_t save_bytes_per_second = 0;

  int64_t max_steps = 0;  // of the global step; 0: no limit
  // So many steps in a row that leave the global step unchanged, by a train op that has no node to
  // change it, end the training: FailedPrecondition. A line says so before. 0: they go on.
  int64_t unchanged_steps_max = 1000;
  // A loss that is NaN or infinite ends the training: InvalidArgument says at which step, on which
  // task, and which node or variable of the step's graph is the first that is not finite. Nothing
  // is saved then. Nor is it while a trainable variable is not finite, which ends the training,
  // too. So the newest checkpoint is one to go on from. false: training goes on, a line says so
  // once, and such values are saved. (As TensorFlow's NanTensorHook with fail_on_nan_loss, but that
  // is on by default here, and its other mode is for a hook to have: set `*stop` in AfterStep.)
  bool stop_on_nan = true;
  // So many steps are under way at the same time: while one waits for its variables or its input,
  // another one computes. They change the variables without regard to one another, as workers do.
  // Each is given a number of its own for the global step that it begins with.
  int concurrent_steps = 1;
  // Borrowed. Is given the steps that it wants; one that fails is not traced.
  StepTrace* trace = nullptr;
  // How long to wait for the chief, and for tasks that are lost or not there yet.
  double wait_seconds = 600;
  double retry_seconds = 1;  // between attempts
  // How long one attempt waits for the tasks, before it says which of them do not answer.
  double connect_seconds = 5;
  // The deadline of a step, of a save and of a restore.
  double step_seconds = 3600;
  // So many failures without a step between them end the training.
  int max_failures_in_a_row = 10;
  // SIGTERM and SIGINT end the training after the step. REQUIRES, if true, a `scheduler` with real
  // threads.
  bool stop_on_signals = true;
  // How to reach the cluster; null: by `target` and `session`.
  std::function<StatusOr<std::unique_ptr<SessionInterface>>()> new_session = nullptr;
  // Takes the lines for people; null: they go to stderr.
  std::function<void(const std::string&)> say = nullptr;
  Env* env = &Env::Real();
  Scheduler* scheduler = &Scheduler::Real();  // of that Env's time
};

class TrainingLoop {
 public:
  TrainingLoop(Program& program, TrainingStep step, TrainingOptions options);
  ~TrainingLoop();

  // Called in the order added. Borrowed.
  void AddHook(TrainingHook* hook) { hooks_.push_back(hook); }

  // Trains until max_steps, the end of the data, a hook or a signal asks it to stop (OK), or until
  // an error that waiting does not cure. REQUIRES that it is called once.
  Status Run();

  // Ends the loop after the current step. Thread-safe.
  void RequestStop() { stop_.store(true); }

  int64_t global_step() const { return global_step_; }
  // The session of the last step, for evaluation. REQUIRES that Run has returned OK.
  Session& session() { return *session_; }

 private:
  bool stopping() const;
  void ExitAfterGrace();
  void EndForcedExit();
  Status Connect();
  Status TryConnect();
  Status NewSession();
  void EndSession();
  Status InitializeOrRestore();
  Status AgreeOnVariables();
  Status RestoreNewest(bool* restored);
  Status WaitForVariables();
  StatusOr<std::vector<std::string>> Uninitialized();
  Status MakeStep();

  Status Train();
  Status TrainToEnd(Status status);
  Status Begin();
  Status RunStep();
  bool MayStart() const;
  Status StartStep();
  StatusOr<std::vector<Tensor>> RunTraced(int64_t step, const std::vector<Tensor>& batch,
                                          RunOptions run) const;
  Status FinishStep();
  Status CheckLoss(double loss, const std::vector<Tensor>& batch);
  Status NonFiniteLoss(double loss, const std::vector<Tensor>& batch);
  std::string NotSavedSince() const;
  Status Recover(const Status& failure);
  Status SaveIfDue();
  bool SaveIsDue() const;
  Status Save();
  Status EndBackgroundSave();
  void EndOrGiveUpSave();
  StatusOr<int64_t> FetchStep();
  std::string CheckpointPrefix() const;
  Status Saved(StatusOr<std::string> checkpoint, int64_t step);
  Status Excused(const Status& saved);
  Status End();
  void Say(const std::string& line);
  void SayWaiting(const std::string& line);
  void Sleep(double seconds);

  Program& program_;
  const TrainingStep step_;
  const TrainingOptions options_;
  const std::vector<Variable> shared_;
  std::optional<Saver> saver_;
  Output initialize_, initialize_locals_, are_initialized_, step_read_, step_after_;
  std::vector<TrainingHook*> hooks_;

  std::unique_ptr<StopSignal> signal_;
  // Cancels the steps from the end of the signal's grace on. Made on the signal's thread: not
  // touched until EndForcedExit has deregistered that.
  std::optional<ExitDeadline> exit_deadline_;
  std::optional<Cancellation::Token> exit_token_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Session> session_;
  std::optional<Callable> run_;  // of session_
  struct UnderWay {
    std::vector<Tensor> batch;
    StartedStep outputs;
  };
  // Steps that have been started, the oldest first. Destruction waits for their end.
  std::deque<UnderWay> under_way_;
  std::unique_ptr<BackgroundSave> saving_;  // null: none is under way
  bool prepared_ = false;                   // variables had values once
  bool ended_ = false;  // all steps were taken; what is left is to save, and to tell the hooks
  int failures_in_a_row_ = 0;
  Status blocked_ = OkStatus();  // why no further step can be started
  int64_t global_step_ = 0;
  std::optional<StepProgress> step_progress_;
  bool said_non_finite_ = false;
  int64_t next_step_ = 0;  // the least number for a step that joins others
  int64_t saved_step_ = -1, saved_ns_ = 0;
  std::string said_;
  int64_t said_ns_ = 0;
};

}  // namespace penstock::client
