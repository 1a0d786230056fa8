// SPDX-License-Identifier: Apache-2.0
//
// SessionSteps: the running steps of one session. It gives each step its id, starts steps as
// MasterSteps, and keeps track of steps that run on their callers' threads. EndAll ends them all.
//
// Thread-safe. Held by shared pointers: the steps that Start has started keep it alive.
// Invariants: (1) once Close has returned true, no step begins; (2) a step is counted, and its end
// noted as a use of the session, before its `done` is called. Locks: no other lock is taken and no
// step is called while mu_ is held. One exception: when EndAll gives up, it lists the running
// steps, and mu_ is then locked before MasterStep's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/master/client_activity.h"
#include "distributed/master/master_step.h"
#include "distributed/master/prepared_step.h"
#include "distributed/master/step_counters.h"

namespace penstock {

class SessionSteps : public std::enable_shared_from_this<SessionSteps> {
 public:
  struct Options {
    std::string session;  // its handle
    TaskId task;          // the master's own
    MasterStep::Services services;
    std::shared_ptr<StepCounters> counters = nullptr;  // null: steps are not counted
    std::shared_ptr<ClientActivity> activity;
  };
  // A step on its caller's thread. It ends with the status of `cancellation` once that is
  // cancelled.
  struct LocalStep {
    Cancellation cancellation;
    const PreparedStep* running = nullptr;  // null: idle
  };

  explicit SessionSteps(Options options);

  // Returns the id of the next step, which looks random; never 0 nor a reserved id.
  int64_t NextId();
  uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }

  // Starts a step with args.id from NextId. If it has args.own_step, it is a partial run. The step
  // fails at once if one of its tasks is lost, or after Close.
  void Start(const std::shared_ptr<PreparedStep>& step, const MasterStep::Args& args, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that a step begins on this thread. FailedPrecondition after Close. The caller must then
  // call EndLocal with the step's status, and its id for the log.
  StatusOr<LocalStep*> BeginLocal(const PreparedStep& prepared) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLocal(LocalStep* step, int64_t id, const Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  // FailedPrecondition after Close.
  Status CheckOpen() const ABSL_LOCKS_EXCLUDED(mu_);
  // Refuses steps from now on. Returns false if an earlier call has done so.
  [[nodiscard]] bool Close() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all steps with `why`, and waits for their ends. DeadlineExceeded names the steps that have
  // not ended within `timeout_ms`. REQUIRES: after Close.
  Status EndAll(const Status& why, int64_t timeout_ms) ABSL_LOCKS_EXCLUDED(mu_);
  // Aborts the steps that have a part in `task`.
  void TaskLost(const TaskId& task, const Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the steps that Start has started and that have not ended.
  std::vector<std::shared_ptr<const MasterStep>> running() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether one of the running() steps is not a partial run.
  bool busy() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Ended(int64_t id, bool partial, const Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void LogFailed(int64_t id, const Status& status) const;
  std::vector<std::shared_ptr<MasterStep>> List() const ABSL_LOCKS_EXCLUDED(mu_);
  bool AnyRunning() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns a text that names the running steps, and the tasks in which they run.
  std::string RunningText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const uint64_t id_base_;
  std::atomic<uint64_t> begun_{0};

  mutable Mutex mu_;
  Condition none_running_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::unique_ptr<LocalStep>> local_ ABSL_GUARDED_BY(mu_);
  std::vector<LocalStep*> idle_local_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, std::shared_ptr<MasterStep>> steps_ ABSL_GUARDED_BY(mu_);
  size_t partial_ ABSL_GUARDED_BY(mu_) = 0;  // number of partial runs in steps_
};

}  // namespace penstock
