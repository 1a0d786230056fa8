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
// Every wait is bounded. SIGTERM and SIGINT end the loop after the step: the chief saves and Run
// returns OK. Hooks and next_batch are called on the thread of Run. Single-threaded, but for
// RequestStop. Borrows the program; its constructor adds nodes to it.
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

#include "client/exactly_once.h"
#include "client/program.h"
#include "client/saver.h"
#include "client/session.h"
#include "client/started_step.h"
#include "client/step_trace.h"
#include "client/stop_signal.h"
#include "client/training_hook.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock::client {

struct TrainingStep {
  // Must raise the program's global step: Optimizer::Minimize does.
  Output train;
  // What next_batch returns is fed to these, in order.
  Outputs inputs = {};
  // OutOfRange: the data have ended, and so does the loop. May be null where nothing is fed. A
  // batch that depends on nothing but the step makes a training that is resumed the same as one
  // that was never interrupted.
  std::function<StatusOr<std::vector<Tensor>>(int64_t global_step)> next_batch = nullptr;
  // Scalars that hooks see after each step: {"loss", loss}.
  std::vector<std::pair<std::string, Output>> measures = {};
  // Where `train` is its Apply: checkpoints then have each parameter server at a moment between
  // steps.
  const ExactlyOnce* once = nullptr;
};

struct TrainingOptions {
  std::string target = "";  // "" is this process
  SessionOptions session = {};
  bool is_chief = true;
  std::string chief = "/job:worker/task:0";  // its name, for those who wait for it

  std::string checkpoint_dir = "";  // "": nothing is saved, and lost variables end the training
  int64_t save_every_steps = 0;     // 0: not by steps
  double save_every_seconds = 600;  // 0: not by time
  int keep_checkpoints = 5;

  int64_t max_steps = 0;  // of the global step; 0: no limit
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
  bool stop_on_signals = true;
  // How to reach the cluster; null: by `target` and `session`.
  std::function<StatusOr<std::unique_ptr<SessionInterface>>()> new_session = nullptr;
  // Where lines for people go; null: to stderr.
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
  Status Connect();
  Status TryConnect();
  Status NewSession();
  void EndSession();
  Status InitializeOrRestore();
  Status RestoreNewest(bool* restored);
  Status WaitForVariables();
  StatusOr<std::vector<std::string>> Uninitialized();
  Status MakeStep();

  Status Train();
  Status Begin();
  Status RunStep();
  bool MayStart() const;
  Status StartStep();
  StatusOr<std::vector<Tensor>> RunTraced(int64_t step, const std::vector<Tensor>& batch,
                                          RunOptions run) const;
  Status FinishStep();
  Status Recover(const Status& failure);
  Status SaveIfDue();
  Status Save();
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
  std::atomic<bool> stop_{false};
  std::unique_ptr<Session> session_;
  std::optional<Callable> run_;  // of session_
  // Steps that have been started, the oldest first. Destruction waits for their end.
  std::deque<StartedStep> under_way_;
  bool prepared_ = false;  // variables had values once
  int failures_in_a_row_ = 0;
  Status blocked_ = OkStatus();  // why no further step can be started
  int64_t global_step_ = 0;
  int64_t next_step_ = 0;  // the least number for a step that joins others
  int64_t saved_step_ = -1, saved_ns_ = 0;
  std::string said_;
  int64_t said_ns_ = 0;
};

}  // namespace penstock::client
