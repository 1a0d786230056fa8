// SPDX-License-Identifier: Apache-2.0
#include "core/base/sim/sim_scheduler.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/join.h"
#include "core/base/mutex.h"
#include "core/base/sim/sim_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

// Starts five threads, each of which records its number three times and yields after each time.
// Returns the recorded numbers.
std::string Turns(uint64_t seed) {
  SimScheduler scheduler({.seed = seed});
  std::string turns;
  const Status status = scheduler.Run([&] {
    std::vector<std::unique_ptr<Thread>> threads;
    for (char name = 'a'; name < 'f'; ++name) {
      threads.push_back(scheduler.StartThread(std::string(1, name), [&, name] {
        for (int i = 0; i < 3; ++i) {
          turns += name;
          scheduler.SleepUntil(scheduler.now_ns());
        }
      }));
    }
  });
  EXPECT_EQ(status, OkStatus());
  return turns;
}

TEST(SimSchedulerTest, TheSeedDecidesTheOrder) {
  std::set<std::string> all;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(Turns(seed).size(), 15);
    EXPECT_EQ(Turns(seed), Turns(seed));
    all.insert(Turns(seed));
  }
  EXPECT_EQ(all.size(), 10);
}

TEST(SimSchedulerTest, TheClockJumpsFromDeadlineToDeadline) {
  SimScheduler scheduler({});
  SimEnv env(scheduler, Env::Real());
  std::vector<int64_t> seconds;
  const int64_t start = env.NowNanos();
  const auto note = [&] { seconds.push_back((env.NowNanos() - start) / kSecond); };
  const Status status = scheduler.Run([&] {
    scheduler.ScheduleAt(start + 3 * kSecond, note);
    scheduler.ScheduleAt(start + 1 * kSecond, note);
    env.SleepForNanos(2 * kSecond);
    note();
  });
  EXPECT_EQ(status, OkStatus());
  EXPECT_THAT(seconds, ElementsAre(1, 2, 3));
}

TEST(SimSchedulerTest, ASleeperLetsOthersRun) {
  SimScheduler scheduler({});
  Scheduler& any = scheduler;
  std::vector<int64_t> seconds;
  const int64_t start = scheduler.now_ns();
  const auto note = [&] { seconds.push_back((scheduler.now_ns() - start) / kSecond); };
  const Status status = scheduler.Run([&] {
    scheduler.ScheduleAt(start + 1 * kSecond, note);
    any.SleepUntil(start + 2 * kSecond, "the test's time to come");
    note();
    any.SleepUntil(start + 1 * kSecond, "a time that has passed");
    note();
  });
  EXPECT_EQ(status, OkStatus());
  EXPECT_THAT(seconds, ElementsAre(1, 2, 2));
}

TEST(SimSchedulerTest, AWaitLetsOthersRun) {
  SimScheduler scheduler({});
  Mutex mu;
  Condition changed(scheduler, "the number to change");
  int number = 0;
  const Status status = scheduler.Run([&] {
    scheduler.Schedule([&] {
      MutexLock lock(mu);
      number = 1;
      changed.NotifyAll();
      changed.Wait(mu, [&] { return number == 2; });
      number = 3;
      changed.NotifyAll();
    });
    MutexLock lock(mu);
    changed.Wait(mu, [&] { return number == 1; });
    number = 2;
    changed.NotifyAll();
    changed.Wait(mu, [&] { return number == 3; });
  });
  EXPECT_EQ(status, OkStatus());
  EXPECT_EQ(number, 3);
}

TEST(SimSchedulerTest, AWaitEndsAtItsDeadlineOrBefore) {
  SimScheduler scheduler({});
  bool in_time = true, changed_in_time = false;
  int64_t waited = 0;
  const Status status = scheduler.Run([&] {
    Mutex mu;
    Condition changed(scheduler, "a change");
    bool ready = false;
    const int64_t start = scheduler.now_ns();
    scheduler.ScheduleAt(start + 5 * kSecond, [&] {
      MutexLock lock(mu);
      ready = true;
      changed.NotifyAll();
    });
    MutexLock lock(mu);
    in_time = changed.WaitUntil(mu, start + 2 * kSecond, [&] { return ready; });
    waited = scheduler.now_ns() - start;
    changed_in_time = changed.WaitUntil(mu, start + 9 * kSecond, [&] { return ready; });
    EXPECT_EQ(scheduler.now_ns() - start, 5 * kSecond);
  });
  EXPECT_EQ(status, OkStatus());
  EXPECT_FALSE(in_time);
  EXPECT_EQ(waited, 2 * kSecond);
  EXPECT_TRUE(changed_in_time);
}

// A waiter does not notice a change without a Notify, as with real threads.
TEST(SimSchedulerTest, ADeadlockNamesTheWaits) {
  SimScheduler scheduler({});
  Mutex mu;
  Condition changed(scheduler, "a change that nobody tells of");
  bool ready = false;
  const Status status = scheduler.Run([&] {
    const auto other = scheduler.StartThread("other", [&] {
      Wait wait(scheduler, "an answer");
      scheduler.ScheduleAt(scheduler.now_ns() + kSecond, [&] { ready = true; });
      Done never = wait.done();
      (void)wait.Get();
    });
    MutexLock lock(mu);
    changed.Wait(mu, [&] { return ready; });
  });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("deadlock"), HasSubstr("main waits for a change that nobody tells"),
                    HasSubstr("other waits for an answer")));
}

TEST(SimSchedulerTest, ARunThatNeverEndsIsAnErrorToo) {
  SimScheduler scheduler({.limit_ns = 60 * kSecond});
  const Status status = scheduler.Run([&] {
    const auto clock = scheduler.StartThread("clock", [&] {
      for (;;) scheduler.SleepUntil(scheduler.now_ns() + kSecond);
    });
  });
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("main waits for the end of a thread"));
}

TEST(SimSchedulerTest, LoopsRunHereInOnePiece) {
  SimScheduler scheduler({.num_threads = 4});
  EXPECT_EQ(scheduler.num_threads(), 4);
  std::vector<int64_t> ranges;
  scheduler.ParallelFor(1000, 1e6, [&](int64_t begin, int64_t end) {
    ranges.push_back(begin);
    ranges.push_back(end);
  });
  EXPECT_THAT(ranges, ElementsAre(0, 1000));
}

}  // namespace
}  // namespace penstock
