// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/deadline_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/base/testing/durations.h"

namespace penstock {
namespace {

// A list of numbers. WaitFor waits until the list has `n` numbers, for at most 10 seconds.
class Notes {
 public:
  void Add(int number) {
    MutexLock lock(mu_);
    numbers_.push_back(number);
    added_.NotifyAll();
  }
  std::vector<int> WaitFor(size_t n) {
    MutexLock lock(mu_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (numbers_.size() < n && added_.WaitUntil(mu_, deadline)) {
    }
    return numbers_;
  }

 private:
  Mutex mu_;
  CondVar added_;
  std::vector<int> numbers_ ABSL_GUARDED_BY(mu_);
};

TEST(DeadlineTimerTest, RingsInOrderAndNotEarly) {
  Env& env = Env::Real();
  Notes notes;
  const auto timer = NewThreadTimer(env, Scheduler::Real());
  const int64_t start = env.NowNanos();
  std::atomic<int64_t> rang{0};
  timer->Arm(start + 60 * kMilli, [&] { notes.Add(3); });
  timer->Arm(start + 20 * kMilli, [&] {
    rang = env.NowNanos();
    notes.Add(1);
  });
  timer->Arm(start + 40 * kMilli, [&] { notes.Add(2); });
  EXPECT_EQ(notes.WaitFor(3), (std::vector<int>{1, 2, 3}));
  EXPECT_GE(rang, start + 20 * kMilli);
}

TEST(DeadlineTimerTest, OneThatHasPassedRingsAtOnce) {
  Notes notes;
  const auto timer = NewThreadTimer(Env::Real(), Scheduler::Real());
  timer->Arm(1, [&] { notes.Add(1); });
  EXPECT_EQ(notes.WaitFor(1).size(), 1u);
}

TEST(DeadlineTimerTest, DisarmedDoesNotRing) {
  Env& env = Env::Real();
  Notes notes;
  const auto timer = NewThreadTimer(env, Scheduler::Real());
  const int64_t start = env.NowNanos();
  const auto first = timer->Arm(start + 10 * kMilli, [&] { notes.Add(1); });
  timer->Arm(start + 30 * kMilli, [&] { notes.Add(2); });
  timer->Disarm(first);
  timer->Disarm(first);  // a second Disarm does nothing
  EXPECT_EQ(notes.WaitFor(1), std::vector<int>{2});
}

TEST(DeadlineTimerTest, DisarmWaitsForARunningCall) {
  Env& env = Env::Real();
  const auto timer = NewThreadTimer(env, Scheduler::Real());
  std::atomic<bool> running{false}, ended{false};
  const auto token = timer->Arm(1, [&] {
    running = true;
    env.SleepForNanos(20 * kMilli);
    ended = true;
  });
  while (!running) std::this_thread::yield();
  timer->Disarm(token);
  EXPECT_TRUE(ended);
}

TEST(DeadlineTimerTest, DestructionForgetsWhatIsArmed) {
  bool rang = false;
  {
    const auto timer = NewThreadTimer(Env::Real(), Scheduler::Real());
    timer->Arm(Env::Real().NowNanos() + int64_t{3600} * 1000 * kMilli, [&] { rang = true; });
  }
  EXPECT_FALSE(rang);
}

TEST(DeadlineTimerTest, ManyThreads) {
  Env& env = Env::Real();
  const auto timer = NewThreadTimer(env, Scheduler::Real());
  std::vector<std::thread> threads;
  std::atomic<int> rang{0}, kept{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        auto alive = std::make_unique<int>(i);
        const auto token = timer->Arm(env.NowNanos() + (i + t) % 7 * 20'000,
                                      [&rang, p = alive.get()] { rang += *p >= 0; });
        if (i % 3 == 0) std::this_thread::yield();
        timer->Disarm(token);
        alive.reset();  // a late call of the callback must not use it
        ++kept;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kept, 2000);
  EXPECT_LE(rang, 2000);
}

TEST(DeadlineTimerTest, RingsOnASimulatedClock) {
  SimScheduler scheduler({});
  SimEnv env(scheduler, Env::Real());
  std::vector<int64_t> rang;
  const int64_t start = env.NowNanos();
  const Status status = scheduler.Run([&] {
    const auto timer = NewThreadTimer(env, scheduler);
    const auto note = [&] { rang.push_back((env.NowNanos() - start) / kMilli); };
    timer->Arm(start + 60'000 * kMilli, note);
    timer->Arm(start + 20 * kMilli, note);
    timer->Disarm(timer->Arm(start + 40 * kMilli, note));
    env.SleepForNanos(120'000 * kMilli);
    note();
  });
  EXPECT_EQ(status, OkStatus());
  EXPECT_EQ(rang, (std::vector<int64_t>{20, 60'000, 120'000}));
}

}  // namespace
}  // namespace penstock
