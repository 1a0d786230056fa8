// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/health.h"

#include <algorithm>
#include <utility>

#include "core/base/fault_point.h"
#include "core/base/log.h"

namespace penstock {
namespace {

const FaultPoint kMissed(FaultPoint::kMishap, "health/answer-missed",
                         "a heartbeat counts as missed although it was answered");
const FaultPoint kUnnoticed(FaultPoint::kBug, "health/loss-unnoticed",
                            "a task that answers no heartbeats does not count as lost");
const FaultPoint kNeverAgain(FaultPoint::kBug, "health/never-well-again",
                             "a task that answers again counts as lost for ever");

}  // namespace

void TaskHealth::NoteLostAbort(int64_t step_id, const Status& why) const {
  MutexLock lock(mu_);
  if (absl::IsAborted(status_)) return;  // the task has restarted
  lost_aborts_[step_id] = why;
  if (lost_aborts_.size() > kAbortsMax) lost_aborts_.erase(lost_aborts_.begin());
}

void TaskHealth::ForgetAbort(int64_t step_id) const {
  MutexLock lock(mu_);
  lost_aborts_.erase(step_id);
}

HealthMonitor::HealthMonitor(const HealthOptions& options, Env& env, DeadlineTimer& timer)
    : options_(options), env_(env), timer_(timer) {
  MutexLock lock(state_->mu);
  ArmTick();
}

HealthMonitor::~HealthMonitor() {
  DeadlineTimer::Token tick;
  {
    MutexLock lock(state_->mu);
    state_->stopped = true;
    state_->tasks.clear();
    tick = tick_;
  }
  timer_.Disarm(tick);
}

std::shared_ptr<const TaskHealth> HealthMonitor::Watch(const TaskId& task,
                                                       std::shared_ptr<WorkerClient> client,
                                                       const std::string& session,
                                                       Listener listener) {
  MutexLock lock(state_->mu);
  Watched& watched = state_->tasks[{task.name, task.incarnation}];
  watched.task = task;
  watched.client = std::move(client);
  watched.sessions[session] = std::move(listener);
  if (watched.last_heard_ns == 0) watched.last_heard_ns = env_.NowNanos();
  return watched.health;
}

void HealthMonitor::Unwatch(const std::string& session) {
  std::vector<Watched> unused;  // destroyed after the lock is released
  MutexLock lock(state_->mu);
  for (auto it = state_->tasks.begin(); it != state_->tasks.end();) {
    it->second.sessions.erase(session);
    if (it->second.sessions.empty()) {
      unused.push_back(std::move(it->second));
      it = state_->tasks.erase(it);
    } else {
      ++it;
    }
  }
}

std::vector<HealthMonitor::Peer> HealthMonitor::peers() const {
  std::vector<Peer> peers;
  MutexLock lock(state_->mu);
  for (const auto& [key, watched] : state_->tasks) {
    peers.push_back({watched.task, watched.misses, watched.last_heard_ns, watched.health->status(),
                     watched.clock.best()});
  }
  return peers;
}

void HealthMonitor::Tick() {
  Ask(/*heartbeat=*/true);
  // Arms the timer last: the destructor locks `mu` and disarms the timer, which waits for a tick
  // that is running.
  MutexLock lock(state_->mu);
  if (!state_->stopped) ArmTick();
}

void HealthMonitor::Ask(bool heartbeat) {
  struct Question {
    Key key;
    std::shared_ptr<WorkerClient> client;
    std::shared_ptr<const TaskHealth> health;
    std::vector<std::string> sessions;
  };
  std::vector<Question> questions;
  {
    MutexLock lock(state_->mu);
    if (state_->stopped) return;
    for (const auto& [key, watched] : state_->tasks) {
      Question question{key, watched.client, watched.health, {}};
      for (const auto& [session, listener] : watched.sessions) question.sessions.push_back(session);
      questions.push_back(std::move(question));
    }
  }
  for (Question& q : questions) {
    if (heartbeat) RepeatAborts(q.key, *q.client, q.health);
    q.client->GetStatus({.sessions = std::move(q.sessions)},
                        {.incarnation = q.key.second, .timeout_ms = options_.interval_ms},
                        [state = state_, key = q.key, misses_max = options_.misses_max, heartbeat,
                         sent_ns = env_.NowNanos(), env = &env_](StatusOr<TaskStatus> answer) {
                          ReadClock(state, key, sent_ns, *env, answer);
                          if (!heartbeat && !answer.ok()) return;
                          Answered(state, key, misses_max, env->NowNanos(), answer);
                        });
  }
}

void HealthMonitor::RepeatAborts(const Key& key, WorkerClient& client,
                                 const std::shared_ptr<const TaskHealth>& health) const {
  std::map<int64_t, Status> aborts;
  {
    MutexLock lock(health->mu_);
    if (absl::IsAborted(health->status_)) health->lost_aborts_.clear();
    aborts = health->lost_aborts_;
  }
  for (const auto& [step_id, why] : aborts) {
    client.AbortStep(step_id, why, {.incarnation = key.second, .timeout_ms = options_.interval_ms},
                     Done([health, step_id = step_id](const Status& acknowledged) {
                       if (acknowledged.ok()) health->ForgetAbort(step_id);
                     }));
  }
}

void HealthMonitor::ReadClock(const std::shared_ptr<State>& state, const Key& key, int64_t sent_ns,
                              Env& env, const StatusOr<TaskStatus>& answer) {
  if (!answer.ok() || answer->wall_ns == 0) return;
  const int64_t now_ns = env.NowNanos(), wall_ns = env.WallMicros() * 1'000;
  MutexLock lock(state->mu);
  const auto it = state->tasks.find(key);
  if (it != state->tasks.end()) it->second.clock.Add(sent_ns, now_ns, wall_ns, answer->wall_ns);
}

void HealthMonitor::ArmTick() {
  tick_ = timer_.Arm(env_.NowNanos() + options_.interval_ms * 1'000'000, [this] { Tick(); });
}

void HealthMonitor::Answered(const std::shared_ptr<State>& state, const Key& key, int misses_max,
                             int64_t now_ns, const StatusOr<TaskStatus>& answer) {
  LossNotice notice;
  std::string recovered;  // the name of a task that counted as lost and has answered
  {
    MutexLock lock(state->mu);
    const auto it = state->tasks.find(key);
    if (it == state->tasks.end()) return;
    Watched& watched = it->second;
    if (answer.ok() && !kMissed.Fires()) {
      watched.misses = 0;
      watched.last_heard_ns = now_ns;
      TaskHealth& health = *watched.health;
      MutexLock health_lock(health.mu_);
      if (absl::IsUnavailable(health.status_) && !kNeverAgain.Fires()) {
        health.status_ = OkStatus();
        health.ok_.store(true, std::memory_order_release);
        recovered = watched.task.ToString();
      }
      for (const std::string& session : answer->unknown_sessions) {
        const auto listener = watched.sessions.find(session);
        if (listener != watched.sessions.end()) notice.listeners.push_back(listener->second);
        notice.what = Loss::kSession;
        notice.why = Aborted(watched.task.ToString(), " has lost the session");
      }
    } else if (absl::IsAborted(answer.status())) {
      MarkLost(watched, answer.status(), &notice);
    } else if (++watched.misses >= misses_max) {
      MarkLost(watched,
               Unavailable(watched.task.ToString(), " has not answered ", watched.misses,
                           " heartbeats: ", answer.status().message()),
               &notice);
    }
  }
  if (!recovered.empty()) {
    Log({.event = "task_back",
         .text = StrCat(recovered, " answers again"),
         .fields = {{"peer", key.first}},
         .limited = true});
  }
  if (!notice.why.ok()) {
    Log({.level = LogLevel::kWarning,
         .event = "task_lost",
         .text = StrCat("task lost: ", notice.why.message()),
         .fields = {{"peer", key.first}},
         .limited = true});
  }
  for (const Listener& listener : notice.listeners) listener(notice.what, notice.why);
}

void HealthMonitor::MarkLost(Watched& watched, const Status& why, LossNotice* notice) {
  if (kUnnoticed.Fires()) return;
  TaskHealth& health = *watched.health;
  MutexLock lock(health.mu_);
  const bool known = health.status_.code() == why.code() || absl::IsAborted(health.status_);
  if (known) return;
  health.status_ = why;
  health.ok_.store(false, std::memory_order_release);
  notice->why = why;
  for (const auto& [session, listener] : watched.sessions) notice->listeners.push_back(listener);
}

}  // namespace penstock
