// SPDX-License-Identifier: Apache-2.0
//
// HealthMonitor: sends a master's heartbeats to the tasks that its sessions use. Detects tasks that
// are dead, frozen, unreachable or restarted, even if no call to them is pending. The heartbeats
// also renew the sessions' leases in these tasks. The answers also carry the tasks' clocks.
//
// A task that misses several heartbeats in a row is Unavailable until it answers again. A task that
// was restarted stays Aborted. If a task has forgotten a session, only the session's listener gets
// Aborted. If a task has not acknowledged the abort of a step, the heartbeats repeat the abort.
// Otherwise the step would stay in the task until the session ends. Time is monotonic. Thread-safe.
// Listeners run on any thread, without locks; one call may still come after Unwatch has returned.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/runtime/deadline_timer.h"
#include "distributed/master/clock_offset.h"
#include "distributed/worker/worker_client.h"

namespace penstock {

struct HealthOptions {
  int64_t interval_ms = 2000;
  // A fault is noticed within (misses_max + 1) * interval_ms: 8 s.
  int misses_max = 3;
};

// The health of one incarnation of a task, as the master knows it. ok() costs one atomic load.
class TaskHealth {
 public:
  bool ok() const { return ok_.load(std::memory_order_acquire); }
  Status status() const {
    MutexLock lock(mu_);
    return status_;
  }
  // Notes that the task has not acknowledged the abort of a step with `why`. The monitor repeats
  // the abort with each heartbeat until the task acknowledges it or has restarted. If there are
  // more than kAbortsMax, the one with the lowest step id is dropped.
  void NoteLostAbort(int64_t step_id, const Status& why) const;

 private:
  friend class HealthMonitor;
  static constexpr size_t kAbortsMax = 1024;
  void ForgetAbort(int64_t step_id) const;

  std::atomic<bool> ok_{true};  // changed under mu_
  mutable Mutex mu_;            // locked after the mutex of the monitor
  Status status_ ABSL_GUARDED_BY(mu_);
  // The aborts that the task has not acknowledged, by step.
  mutable std::map<int64_t, Status> lost_aborts_ ABSL_GUARDED_BY(mu_);
};

class HealthMonitor {
 public:
  enum class Loss { kTask, kSession };
  // Called with the reason when the task is lost, or has forgotten the session.
  using Listener = std::function<void(Loss what, const Status& why)>;

  HealthMonitor(const HealthOptions& options, Env& env, DeadlineTimer& timer);
  ~HealthMonitor();

  // Watches `task` on behalf of `session` until Unwatch. Returns the task's health, which all its
  // watches share.
  std::shared_ptr<const TaskHealth> Watch(const TaskId& task, std::shared_ptr<WorkerClient> client,
                                          const std::string& session, Listener listener);
  // One watched task, for status reports and tests.
  struct Peer {
    TaskId task;
    int misses = 0;             // heartbeats missed in a row
    int64_t last_heard_ns = 0;  // by the Env's clock
    Status status;              // the reason why the task counts as lost
    std::optional<ClockOffset::Reading> clock;
  };
  std::vector<Peer> peers() const;
  // Asks all watched tasks for their clocks now, in addition to the heartbeats. An answer that does
  // not come is not counted as a missed heartbeat.
  void ReadClocks() { Ask(/*heartbeat=*/false); }
  // Ends all watches on behalf of `session`.
  void Unwatch(const std::string& session);

 private:
  struct Watched {
    TaskId task;
    std::shared_ptr<WorkerClient> client;
    std::shared_ptr<TaskHealth> health = std::make_shared<TaskHealth>();
    std::map<std::string, Listener> sessions;
    int misses = 0;
    int64_t last_heard_ns = 0;
    ClockOffset clock;
  };
  using Key = std::pair<std::string, uint64_t>;  // name, incarnation
  // Outlives the monitor, because answers may arrive after its end.
  struct State {
    Mutex mu;  // locked before the mutex of the timer
    std::map<Key, Watched> tasks ABSL_GUARDED_BY(mu);
    bool stopped ABSL_GUARDED_BY(mu) = false;
  };
  struct LossNotice {
    Status why;
    Loss what = Loss::kTask;
    std::vector<Listener> listeners;
  };

  void ArmTick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void Tick();
  // Sends a question to all watched tasks. If `heartbeat`, a missing answer counts as a missed
  // heartbeat.
  void Ask(bool heartbeat);
  // Repeats the aborts that the task has not acknowledged.
  void RepeatAborts(const Key& key, WorkerClient& client,
                    const std::shared_ptr<const TaskHealth>& health) const;
  static void Answered(const std::shared_ptr<State>& state, const Key& key, int misses_max,
                       int64_t now_ns, const StatusOr<TaskStatus>& answer);
  // Notes the task's clock from the answer to a question that was sent at `sent_ns`.
  static void ReadClock(const std::shared_ptr<State>& state, const Key& key, int64_t sent_ns,
                        Env& env, const StatusOr<TaskStatus>& answer);
  // REQUIRES: the caller holds the state's lock, which guards `watched`.
  static void MarkLost(Watched& watched, const Status& why, LossNotice* notice);

  const HealthOptions options_;
  Env& env_;
  DeadlineTimer& timer_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  DeadlineTimer::Token tick_ ABSL_GUARDED_BY(state_->mu){0, 0};
};

}  // namespace penstock
