// SPDX-License-Identifier: Apache-2.0
//
// SimScheduler: everything in one thread, on a clock that jumps from one deadline to the next. A
// seed decides which of several ready closures runs first: the same seed gives the same run,
// another seed another interleaving.
//
//   SimScheduler scheduler({.seed = 7});
//   SimEnv env(scheduler, Env::Real());
//   RETURN_IF_ERROR(scheduler.Run([&] { ... }));
//
// Each closure has a stack of its own, so that a wait anywhere in it lets others run. Closures take
// no simulated time. They never interrupt each other: they change places at waits alone.
// One thread uses it; all that is called here is called from Run's body, or from what it starts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/scheduler.h"
#include "core/base/status.h"

namespace penstock {

class SimScheduler final : public Scheduler {
 public:
  struct Options {
    uint64_t seed = 0;
    int num_threads = 2;  // what num_threads() says
    // The simulated time after which a run counts as hanging.
    int64_t limit_ns = int64_t{3600} * 1'000'000'000;
  };
  explicit SimScheduler(const Options& options);
  ~SimScheduler() override;

  // Runs `body` and all that it starts to their end. An error lists every wait:
  //   Internal          nothing is left to run, and no deadline is left to come
  //   DeadlineExceeded  the time limit was passed
  // After an error the closures that wait are left as they are, with all that they hold: nothing of
  // it can be used.
  Status Run(Closure body);
  // Has Run return OK at the next wait; all that waits then is left as after an error.
  void Abandon();

  int64_t now_ns() const;
  // The next of the numbers that follow from the seed.
  uint64_t Random();
  // Runs `closure` when the clock has come to `at_ns`.
  void ScheduleAt(int64_t at_ns, Closure closure);
  // Lets others run until the clock has come to `at_ns`.
  void SleepUntil(int64_t at_ns);

  int num_threads() const override { return options_.num_threads; }
  void Schedule(Closure closure) override;
  Scheduler& files() override { return *this; }
  std::unique_ptr<Thread> StartThread(const std::string& name, Closure body) override;
  bool Spin(SpinHabit&, std::chrono::nanoseconds, absl::FunctionRef<bool()> ready) override {
    return ready();
  }

 private:
  struct Routine;
  struct State;
  void Split(int64_t total, double, Range fn) override { fn(0, total); }
  bool Wait(Condition& condition, Mutex& mu, int64_t deadline_ns) override;
  void Notify(Condition& condition) override;

  const Options options_;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
