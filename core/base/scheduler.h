// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: runs closures, starts threads, and blocks threads. Like Env it is passed in through
// constructors, so that the same code runs on the threads of the machine (ThreadPool) and, under a
// simulated clock, in one thread (core/base/sim).
//
// Condition: blocks a thread until another closure has changed something. Every such wait must use
// a Condition, and hold no mutex except the one that it passes to the Condition. Then a simulation
// can run another closure during the wait, and can list all waits if no closure can run any more.
// (CondVar is for waits that do not depend on another closure.)
//
// Thread-safe. A deadline is a time on the scale of NowNanos() of the Env that belongs to the
// scheduler: Env::Real() for ThreadPool.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/base/spin.h"

namespace penstock {

class Condition;

// A thread that Scheduler::StartThread has started. The destructor waits until the thread has
// ended.
class Thread {
 public:
  virtual ~Thread() = default;
};

class Scheduler {
 public:
  using Closure = absl::AnyInvocable<void() &&>;
  using Range = absl::FunctionRef<void(int64_t begin, int64_t end)>;

  virtual ~Scheduler() = default;

  // Returns the scheduler of the threads of this process, one per core. The threads start with the
  // first closure; the scheduler is never destroyed.
  static Scheduler& Real();

  // Returns how many closures can run at the same time.
  virtual int num_threads() const = 0;

  // Runs `closure` soon, on another thread. The closure must not block for long: to wait for a file
  // or another process, it must use an asynchronous call, files() or StartThread.
  virtual void Schedule(Closure closure) = 0;

  // Returns the scheduler for closures that wait for files. It has a few threads, separate from
  // those of this scheduler.
  virtual Scheduler& files() = 0;

  // Runs `body`, which may block, on a new thread. Debuggers and traces show `name`.
  virtual std::unique_ptr<Thread> StartThread(const std::string& name, Closure body) = 0;

  // Calls fn(begin, end) on disjoint ranges that cover [0, total), on this thread and on idle
  // threads, and returns when all calls have returned. `cost_ns` is a rough estimate of the time
  // for one index; work of less than about 10 us in total runs on this thread in one call. Closures
  // may call ParallelFor: the calling thread takes part in the work, so no deadlock is possible.
  void ParallelFor(int64_t total, double cost_ns, Range fn) {
    if (total <= 0) return;
    if (total == 1 || static_cast<double>(total) * cost_ns < 2 * kShareNanosMin) {
      return fn(0, total);
    }
    Split(total, cost_ns, fn);
  }

  // Polls `ready` for up to `limit`. For conditions that another core will probably make true at
  // once. `habit` may limit the polling to a single test. Returns the last result of `ready`.
  virtual bool Spin(SpinHabit& habit, std::chrono::nanoseconds limit,
                    absl::FunctionRef<bool()> ready) = 0;

  // Blocks this thread until `time_ns`; under a simulated clock, other closures run meanwhile.
  // `what` has the same meaning as for a Condition. REQUIRES: the caller holds no mutex.
  void SleepUntil(int64_t time_ns, const char* what);

 protected:
  friend class Condition;

  // The minimum work, in nanoseconds, for which one more thread may join a loop. For less work,
  // waking the thread costs more than it saves.
  static constexpr double kShareNanosMin = 5'000;

  // Implements ParallelFor for a loop with enough work for several threads. REQUIRES: total >= 2,
  // cost_ns > 0.
  virtual void Split(int64_t total, double cost_ns, Range fn) = 0;
  // Releases `mu`, waits for Notify(condition) and locks `mu` again. May return without a
  // notification. Returns false if `deadline_ns` has passed.
  virtual bool Wait(Condition& condition, Mutex& mu, int64_t deadline_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
  virtual void Notify(Condition& condition) = 0;

  static std::condition_variable& Native(Condition& condition);
  static std::mutex& Native(Mutex& mu) { return mu.mu_; }
};

//   MutexLock lock(mu_);
//   changed_.Wait(mu_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !queue_.empty(); });
class Condition {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // `what` completes "waits for ..." in a simulation's list of waits. It must never be freed.
  Condition(Scheduler& scheduler, const char* what) : scheduler_(scheduler), what_(what) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Blocks until `ready` returns true. `ready` is called with `mu` held. REQUIRES: the caller holds
  // `mu`.
  template <class Ready>
  void Wait(Mutex& mu, Ready ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {  // because the annotation of `ready` names its own `mu_`
    while (!ready()) scheduler_.Wait(*this, mu, kNever);
  }
  // Does the same as Wait, but also returns when `deadline_ns` has passed. Returns what `ready`
  // returned last.
  template <class Ready>
  bool WaitUntil(Mutex& mu, int64_t deadline_ns, Ready ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!ready()) {
      if (!scheduler_.Wait(*this, mu, deadline_ns)) return ready();
    }
    return true;
  }
  // Makes all waiters test their condition again. Call this after a change that was made while the
  // caller held the mutex.
  void NotifyAll() { scheduler_.Notify(*this); }

  const char* what() const { return what_; }

 private:
  friend class Scheduler;

  Scheduler& scheduler_;
  const char* const what_;
  std::condition_variable native_;  // for schedulers of real threads
};

inline void Scheduler::SleepUntil(int64_t time_ns, const char* what) {
  Mutex mu;
  Condition never(*this, what);
  MutexLock lock(mu);
  (void)never.WaitUntil(mu, time_ns, [] { return false; });
}

inline std::condition_variable& Scheduler::Native(Condition& condition) {
  return condition.native_;
}

}  // namespace penstock
