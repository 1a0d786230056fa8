// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/alarm.h"

#include <algorithm>
#include <utility>

namespace penstock {

struct Alarm::State {
  State(Scheduler& threads, Env& env, std::function<void()> ring)
      : threads(threads),
        env(env),
        ring(std::move(ring)),
        changed(threads, "the next time limit of a batch") {}

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

Alarm::Alarm(Scheduler& threads, Env& env, std::function<void()> ring)
    : state_(std::make_shared<State>(threads, env, std::move(ring))) {}

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
    if (state_->thread == nullptr) {
      state_->thread =
          state_->threads.StartThread("penstock_alarm", [state = state_] { state->Serve(); });
    }
  }
  state_->changed.NotifyAll();
}

}  // namespace penstock
