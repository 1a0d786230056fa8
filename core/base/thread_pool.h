// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a fixed set of threads that run closures: the Scheduler of a real machine.
//
// The threads start with the first closure. An idle one spins for about 50 us before it blocks: on
// virtual machines waking a sleeping core costs 50-100 us, more than most ops. Thread-safe.
// Destruction runs what is queued, then joins.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/scheduler.h"

namespace penstock {

class ThreadPool final : public Scheduler {
 public:
  // num_threads >= 1; 0 means one per core. `name` shows in debuggers and traces.
  ThreadPool(const std::string& name, int num_threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const override { return num_threads_; }
  void Schedule(Closure closure) override;
  Scheduler& files() override;
  std::unique_ptr<Thread> StartThread(const std::string& name, Closure body) override;
  bool Spin(SpinHabit& habit, std::chrono::nanoseconds limit,
            absl::FunctionRef<bool()> ready) override {
    return habit.Until(ready, limit);
  }

 private:
  struct State;
  void Split(int64_t total, double cost_ns, Range fn) override;
  bool Wait(Condition& condition, Mutex& mu, int64_t deadline_ns) override;
  void Notify(Condition& condition) override { Native(condition).notify_all(); }

  const int num_threads_;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
