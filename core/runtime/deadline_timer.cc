// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/deadline_timer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
// Longer waits are cut into pieces, so that clock arithmetic inside the library cannot overflow.
constexpr int64_t kSleepNanosMax = int64_t{3600} * 1'000'000'000;

// The thread is woken only for a deadline earlier than the one it sleeps for; when what it slept
// for has been disarmed it looks once and sleeps on.
class ThreadTimer final : public DeadlineTimer {
 public:
  explicit ThreadTimer(Env& env) : env_(env) {}

  ~ThreadTimer() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      wake_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }

  Token Arm(int64_t deadline_ns, std::function<void()> expired) override {
    MutexLock lock(mu_);
    const Token token{deadline_ns, next_number_++};
    armed_.emplace(token, std::move(expired));
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Run(); });
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
    while (running_ == token) ran_.Wait(mu_);
  }

 private:
  void Run() {
    MutexLock lock(mu_);
    while (!stopping_) {
      const int64_t now = env_.NowNanos();
      const int64_t next = armed_.empty() ? kForever : armed_.begin()->first.first;
      if (next > now) {
        const int64_t nanos = std::min(next - std::max<int64_t>(now, 0), kSleepNanosMax);
        sleeps_until_ = next;
        wake_.WaitFor(mu_, std::chrono::nanoseconds(nanos));
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

  Env& env_;
  Mutex mu_;
  CondVar wake_, ran_;
  std::map<Token, std::function<void()>> armed_ ABSL_GUARDED_BY(mu_);
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  Token running_ ABSL_GUARDED_BY(mu_){0, 0};
  int64_t sleeps_until_ ABSL_GUARDED_BY(mu_) = 0;  // while asleep
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);  // changed by the first Arm only
};

}  // namespace

DeadlineTimer& DeadlineTimer::Real() {
  static DeadlineTimer& timer = *new ThreadTimer(Env::Real());
  return timer;
}

std::unique_ptr<DeadlineTimer> NewThreadTimer(Env& env) {
  return std::make_unique<ThreadTimer>(env);
}

}  // namespace penstock
