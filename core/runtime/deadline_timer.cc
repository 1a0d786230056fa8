// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/deadline_timer.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace penstock {
namespace {
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
// Longer waits are cut into pieces, so that clock arithmetic inside the library cannot overflow.
constexpr int64_t kSleepNanosMax = int64_t{3600} * 1'000'000'000;
}  // namespace

DeadlineTimer& DeadlineTimer::Real() {
  static DeadlineTimer& timer = *new DeadlineTimer(Env::Real());
  return timer;
}

DeadlineTimer::~DeadlineTimer() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

DeadlineTimer::Token DeadlineTimer::Arm(int64_t deadline_ns, std::function<void()> expired) {
  std::lock_guard<std::mutex> lock(mu_);
  const Token token{deadline_ns, next_number_++};
  armed_.emplace(token, std::move(expired));
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  } else if (deadline_ns < sleeps_until_) {
    wake_.notify_all();
  }
  return token;
}

void DeadlineTimer::Disarm(const Token& token) {
  std::function<void()> removed;  // destroyed after the lock is released
  std::unique_lock<std::mutex> lock(mu_);
  const auto it = armed_.find(token);
  if (it != armed_.end()) {
    removed = std::move(it->second);
    armed_.erase(it);
    lock.unlock();
    return;
  }
  ran_.wait(lock, [&] { return running_ != token; });
}

void DeadlineTimer::Run() {
  std::unique_lock<std::mutex> lock(mu_);
  while (!stopping_) {
    const int64_t now = env_.NowNanos();
    const int64_t next = armed_.empty() ? kForever : armed_.begin()->first.first;
    if (next > now) {
      const int64_t nanos = std::min(next - std::max<int64_t>(now, 0), kSleepNanosMax);
      sleeps_until_ = next;
      wake_.wait_for(lock, std::chrono::nanoseconds(nanos));
      sleeps_until_ = 0;
      continue;
    }
    auto node = armed_.extract(armed_.begin());
    running_ = node.key();
    lock.unlock();
    node.mapped()();
    node.mapped() = nullptr;
    lock.lock();
    running_ = {0, 0};
    ran_.notify_all();
  }
}

}  // namespace penstock
