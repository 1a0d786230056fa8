// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a fixed set of threads that run closures: the Scheduler of a real machine.
//
// The threads start with the first closure. An idle thread spins for about 50 us before it blocks:
// on virtual machines waking a sleeping core costs 50-100 us, more than most ops. Thread-safe. The
// destructor runs the queued closures, then joins the threads.
//
// LoopWatch, WatchedLoops: end the long ParallelFor loops of a thread early if the thread's step
// has ended:
//
//   const WatchedLoops watched(&step);   // the executor, once per thread and step
//   ... kernels: ParallelFor may throw LoopEnded, which Guarded turns into a Status ...
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "core/base/scheduler.h"
#include "core/base/status.h"

namespace penstock {

class LoopWatch {
 public:
  // Returns OK while the loops should continue. Any thread of a loop calls it between two blocks of
  // the loop. A block takes a few milliseconds if the `cost_ns` of the ParallelFor is about right.
  virtual Status CheckContinues() const = 0;

 protected:
  ~LoopWatch() = default;
};

// While this object lives, each ParallelFor that its thread begins ends early if `watch` says so,
// in all threads that run parts of the loop. Objects nest: the destructor restores the enclosing
// one's watch. With a null watch, loops always run to their end, which a loop that changes shared
// data in place needs.
class WatchedLoops {
 public:
  explicit WatchedLoops(const LoopWatch* watch) : outer_(std::exchange(current_, watch)) {}
  ~WatchedLoops() { current_ = outer_; }
  WatchedLoops(const WatchedLoops&) = delete;
  WatchedLoops& operator=(const WatchedLoops&) = delete;
  static const LoopWatch* current() { return current_; }

 private:
  static constinit thread_local const LoopWatch* current_;
  const LoopWatch* const outer_;
};

// Thrown by a ParallelFor that has ended early.
class LoopEnded final : public std::exception {
 public:
  explicit LoopEnded(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return "a loop was given up"; }

 private:
  Status status_;
};

class ThreadPool final : public Scheduler {
 public:
  // `num_threads` is the number of threads; 0: one per core. Debuggers and traces show `name`.
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
