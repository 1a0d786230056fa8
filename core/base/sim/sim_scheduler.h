// SPDX-License-Identifier: Apache-2.0
//
// SimScheduler: a Scheduler that runs all closures in one thread, on a clock that jumps from one
// deadline to the next. A seed decides which of several ready closures runs first: the same seed
// gives the same run, another seed another interleaving.
//
//   SimScheduler scheduler({.seed = 7});
//   SimEnv env(scheduler, Env::Real());
//   RETURN_IF_ERROR(scheduler.Run([&] { ... }));
//
// Each closure has a stack of its own, so that a wait anywhere in it lets other closures run.
// Closures take no simulated time and switch only at waits. One thread uses the scheduler; all
// functions except Run are called from Run's body, or from closures that it starts.
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
    int num_threads = 2;  // the value that num_threads() returns; all closures run on one thread
    // The simulated time after which a run counts as hung.
    int64_t limit_ns = int64_t{3600} * 1'000'000'000;
  };
  explicit SimScheduler(const Options& options);
  ~SimScheduler() override;

  // Runs `body` and all closures that it starts, until all have ended. Errors list all waits:
  //   Internal          no closure can run, and no wait has a deadline (a deadlock)
  //   DeadlineExceeded  the simulated time has passed Options::limit_ns
  // After an error, waiting closures are never resumed, and the objects on their stacks are not
  // destroyed: do not use these objects.
  Status Run(Closure body);
  // Makes Run return OK at the next wait. Closures that still wait are never resumed, as after an
  // error.
  void Abandon();

  int64_t now_ns() const;
  // Returns the next random number of the seed's sequence.
  uint64_t Random();
  // Runs `closure` when the clock reaches `at_ns`.
  void ScheduleAt(int64_t at_ns, Closure closure);
  // Lets other closures run until the clock reaches `at_ns`.
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
