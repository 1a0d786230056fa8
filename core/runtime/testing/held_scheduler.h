// SPDX-License-Identifier: Apache-2.0
//
// HeldScheduler: a Scheduler for tests that runs closures on the test's thread, when the test calls
// it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock {

// A wait does not block, but calls `on_wait`, without holding the mutex.
class HeldScheduler final : public Scheduler {
 public:
  int num_threads() const override { return 3; }
  void Schedule(Closure closure) override { held.push_back(std::move(closure)); }
  Scheduler& files() override { return *this; }
  std::unique_ptr<Thread> StartThread(const std::string&, Closure) override { return nullptr; }
  bool Spin(SpinHabit&, std::chrono::nanoseconds, absl::FunctionRef<bool()> ready) override {
    return ready();
  }

  void RunOne() {
    CHECK(!held.empty());
    Closure closure = std::move(held.front());
    held.pop_front();
    std::move(closure)();
  }

  std::deque<Closure> held;
  // Returns false to report that the deadline has passed.
  std::function<bool(int64_t deadline_ns)> on_wait;

 protected:
  void Split(int64_t total, double, Range fn) override { fn(0, total); }
  bool Wait(Condition&, Mutex& mu, int64_t deadline_ns) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    CHECK(on_wait != nullptr);
    mu.Unlock();
    const bool in_time = on_wait(deadline_ns);
    mu.Lock();
    return in_time;
  }
  void Notify(Condition&) override {}
};

}  // namespace penstock
