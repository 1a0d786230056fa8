// SPDX-License-Identifier: Apache-2.0
//
// Scheduler: runs closures and blocks threads. Handed in through constructors, as Env is, so
// that the same code runs on the threads of the machine (ThreadPool) and, under a simulated clock,
// in one thread (core/base/sim).
//
// Condition: where code waits for a change. Every wait that another closure ends goes through one,
// with no mutex held but the one that it is given (CondVar is for waits that end by themselves): so
// a simulation can run something else meanwhile, and can say who waits for what when nothing is
// left to run.
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

// A thread that Scheduler::StartThread has begun. Destruction waits for its end.
class Thread {
 public:
  virtual ~Thread() = default;
};

class Scheduler {
 public:
  using Closure = absl::AnyInvocable<void() &&>;
  using Range = absl::FunctionRef<void(int64_t begin, int64_t end)>;

  virtual ~Scheduler() = default;

  // The threads of this process, one per core. They start with the first closure and live for ever.
  static Scheduler& Real();

  // How many closures run at the same time.
  virtual int num_threads() const = 0;

  // Runs `closure` soon, on another thread. It must not block for long: whatever waits for the
  // outside world is asynchronous, or has a thread of its own.
  virtual void Schedule(Closure closure) = 0;

  // The threads for closures that wait for files: a few, apart from those that compute.
  virtual Scheduler& files() = 0;

  // Runs `body`, which may block, on a thread of its own. `name` shows in debuggers and traces.
  virtual std::unique_ptr<Thread> StartThread(const std::string& name, Closure body) = 0;

  // Calls fn(begin, end) on disjoint ranges that cover [0, total), on this thread and on threads
  // that are free, and returns when all are done. Work under about 10 us in all runs here at once.
  // `cost_ns` is the rough cost of one unit. Safe to call from a closure: the caller takes part, so
  // it cannot deadlock.
  void ParallelFor(int64_t total, double cost_ns, Range fn) {
    if (total <= 0) return;
    if (total == 1 || static_cast<double>(total) * cost_ns < 2 * kShareNanosMin) {
      return fn(0, total);
    }
    Split(total, cost_ns, fn);
  }

  // Polls `ready` for up to `limit` where a change is expected from another core at once. Returns
  // whether it holds.
  virtual bool Spin(SpinHabit& habit, std::chrono::nanoseconds limit,
                    absl::FunctionRef<bool()> ready) = 0;

 protected:
  friend class Condition;

  // A thread joins a loop for no less: below this the hand-over costs more than it saves.
  static constexpr double kShareNanosMin = 5'000;

  // ParallelFor of a loop that is worth more than one thread: total >= 2, cost_ns > 0.
  virtual void Split(int64_t total, double cost_ns, Range fn) = 0;
  // Releases `mu`, waits for Notify(condition) and holds `mu` again. May return for no reason.
  // Returns false when `deadline_ns` has come.
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

  // `what` completes "waits for ..." in a report of who waits: a text that is never freed.
  Condition(Scheduler& scheduler, const char* what) : scheduler_(scheduler), what_(what) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Blocks until `ready` holds, which is called with `mu` held. REQUIRES `mu` to be held by the
  // caller.
  template <class Ready>
  void Wait(Mutex& mu, Ready ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {  // `ready` names the mutex as its owner knows it
    while (!ready()) scheduler_.Wait(*this, mu, kNever);
  }
  // As Wait, until `deadline_ns` at the latest. Returns whether `ready` holds.
  template <class Ready>
  bool WaitUntil(Mutex& mu, int64_t deadline_ns, Ready ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!ready()) {
      if (!scheduler_.Wait(*this, mu, deadline_ns)) return ready();
    }
    return true;
  }
  // Has all waiters look again, after a change that was made with the mutex held.
  void NotifyAll() { scheduler_.Notify(*this); }

  const char* what() const { return what_; }

 private:
  friend class Scheduler;

  Scheduler& scheduler_;
  const char* const what_;
  std::condition_variable native_;  // for schedulers of real threads
};

inline std::condition_variable& Scheduler::Native(Condition& condition) {
  return condition.native_;
}

}  // namespace penstock
