// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/alarm.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

namespace penstock {
namespace {

std::atomic<int> alarms{0};

}  // namespace

struct Alarm::State {
  State(Scheduler& threads, Env& env, std::function<void()> ring)
      : threads(threads),
        env(env),
        ring(std::move(ring)),
        changed(threads, "the next time limit") {
    ++alarms;
  }
  ~State() { --alarms; }

  void Serve() {
    MutexLock lock(mu);
    while (true) {
      const int64_t at_ns = next_ns;
      const bool new_time =
          changed.WaitUntil(mu, at_ns, [this, at_ns]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
            return stopped || next_ns != at_ns;
          });
      if (stopped) return;
      if (new_time || env.NowNanos() < at_ns) continue;
      next_ns = Condition::kNever;
      threads.Schedule([ring = ring] { ring(); });
    }
  }

  Scheduler& threads;
  Env& env;
  const std::function<void()> ring;
  Mutex mu;
  Condition changed;
  int64_t next_ns ABSL_GUARDED_BY(mu) = Condition::kNever;
  bool stopped ABSL_GUARDED_BY(mu) = false;
  std::unique_ptr<Thread> thread ABSL_GUARDED_BY(mu);
};

Alarm::Alarm(std::shared_ptr<State> state) : state_(std::move(state)) {}

StatusOr<std::unique_ptr<Alarm>> Alarm::Make(Scheduler& threads, Env& env,
                                             std::function<void()> ring) {
  auto state = std::make_shared<State>(threads, env, std::move(ring));
  if (alarms > kAlarmsMax) {
    return ResourceExhausted("the process has ", kAlarmsMax,
                             " batchers, exchanges of rows and worker clocks already; penstock "
                             "reset drops those with a shared_name");
  }
  try {
    MutexLock lock(state->mu);
    state->thread = threads.StartThread("penstock_alarm", [state] { state->Serve(); });
  } catch (const std::exception& e) {
    return ResourceExhausted("no thread for time limits: ", e.what());
  }
  return std::unique_ptr<Alarm>(new Alarm(std::move(state)));
}

Alarm::~Alarm() {
  std::unique_ptr<Thread> thread;
  {
    MutexLock lock(state_->mu);
    state_->stopped = true;
    thread = std::move(state_->thread);
  }
  state_->changed.NotifyAll();
}

void Alarm::Set(int64_t at_ns) {
  {
    MutexLock lock(state_->mu);
    if (at_ns >= state_->next_ns) return;
    state_->next_ns = at_ns;
  }
  state_->changed.NotifyAll();
}

}  // namespace penstock
