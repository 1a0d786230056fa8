// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/deadline_timer.h"

#include <map>

#include "core/base/mutex.h"

namespace penstock {
namespace {

// Arm wakes the thread only for a deadline earlier than the one until which the thread sleeps.
// Disarm does not wake it: when the time of a disarmed callback comes, the thread wakes up, finds
// nothing to call and sleeps again.
class ThreadTimer final : public DeadlineTimer {
 public:
  ThreadTimer(Env& env, Scheduler& scheduler)
      : env_(env),
        scheduler_(scheduler),
        wake_(scheduler, "the next deadline of a timer"),
        ran_(scheduler, "the end of a timer's callback") {}

  ~ThreadTimer() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      wake_.NotifyAll();
    }
    thread_ = nullptr;
  }

  Token Arm(int64_t deadline_ns, std::function<void()> expired) override {
    MutexLock lock(mu_);
    const Token token{deadline_ns, next_number_++};
    armed_.emplace(token, std::move(expired));
    if (thread_ == nullptr) {
      thread_ = scheduler_.StartThread("deadlines", [this] { Run(); });
    } else if (deadline_ns < sleeps_until_) {
      wake_.NotifyAll();
    }
    return token;
  }

  void Disarm(const Token& token) override {
    std::function<void()> removed;  // destroyed after the lock is released
    MutexLock lock(mu_);
    const auto it = armed_.find(token);
    if (it != armed_.end()) {
      removed = std::move(it->second);
      armed_.erase(it);
      lock.Unlock();
      return;
    }
    ran_.Wait(mu_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return running_ != token; });
  }

 private:
  void Run() {
    MutexLock lock(mu_);
    while (!stopping_) {
      const int64_t next = Next();
      if (next > env_.NowNanos()) {
        sleeps_until_ = next;
        wake_.WaitUntil(mu_, next, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return stopping_ || Next() < next;
        });
        sleeps_until_ = 0;
        continue;
      }
      auto first = armed_.extract(armed_.begin());
      running_ = first.key();
      lock.Unlock();
      first.mapped()();
      first.mapped() = nullptr;
      lock.Lock();
      running_ = {0, 0};
      ran_.NotifyAll();
    }
  }
  int64_t Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return armed_.empty() ? Condition::kNever : armed_.begin()->first.first;
  }

  Env& env_;
  Scheduler& scheduler_;
  Mutex mu_;
  Condition wake_, ran_;
  std::map<Token, std::function<void()>> armed_ ABSL_GUARDED_BY(mu_);
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  Token running_ ABSL_GUARDED_BY(mu_){0, 0};
  int64_t sleeps_until_ ABSL_GUARDED_BY(mu_) = 0;  // valid while the thread sleeps
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Thread> thread_;  // set once, by the first Arm
};

}  // namespace

DeadlineTimer& DeadlineTimer::Real() {
  static DeadlineTimer& timer = *new ThreadTimer(Env::Real(), Scheduler::Real());
  return timer;
}

std::unique_ptr<DeadlineTimer> NewThreadTimer(Env& env, Scheduler& scheduler) {
  return std::make_unique<ThreadTimer>(env, scheduler);
}

}  // namespace penstock
