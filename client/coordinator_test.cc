// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator.h"

#include <atomic>
#include <thread>

#include "core/base/sim/sim_scheduler.h"
#include "core/base/testing/durations.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

// Returns a thread's body that waits for a stop, then adds 1 to `*ended` and returns an error.
std::function<Status()> UntilStopped(Coordinator& coordinator, std::atomic<int>* ended) {
  return [&coordinator, ended] {
    while (!coordinator.should_stop()) std::this_thread::yield();
    ++*ended;
    return Cancelled("a consequence of the stop");
  };
}

TEST(CoordinatorTest, ThreadsThatJustEndStopNobody) {
  Coordinator coordinator;
  for (int i = 0; i < 4; ++i) coordinator.Start([] { return OkStatus(); });
  EXPECT_EQ(coordinator.Join(), OkStatus());
  EXPECT_FALSE(coordinator.should_stop());
}

TEST(CoordinatorTest, AnErrorStopsAllAndIsToldByJoin) {
  Coordinator coordinator;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 3; ++i) coordinator.Start(UntilStopped(coordinator, &ended));
  coordinator.Start([] { return NotFound("no such file"); });
  EXPECT_EQ(coordinator.Join(), NotFound("no such file"));
  EXPECT_EQ(ended, 3);
  EXPECT_TRUE(coordinator.should_stop());
  EXPECT_EQ(coordinator.cancellation().status(), Cancelled("a stop was requested: no such file"));
}

TEST(CoordinatorTest, TheEndOfTheInputIsAGoodEnd) {
  Coordinator coordinator;
  std::atomic<int> ended = 0;
  coordinator.Start(UntilStopped(coordinator, &ended));
  coordinator.Start([] { return OutOfRange("end of input"); });
  EXPECT_EQ(coordinator.Join(), OkStatus());
  EXPECT_EQ(ended, 1);
}

TEST(CoordinatorTest, WhatComesAfterAStopIsItsConsequence) {
  Coordinator coordinator;
  coordinator.RequestStop();
  coordinator.RequestStop(NotFound("too late"));
  EXPECT_EQ(coordinator.Join(), OkStatus());
  EXPECT_EQ(coordinator.cancellation().status(), Cancelled("a stop was requested"));
}

TEST(CoordinatorTest, AThreadMayStartAnother) {
  Coordinator coordinator;
  std::atomic<bool> second = false;
  coordinator.Start([&] {
    coordinator.Start([&] {
      second = true;
      return OkStatus();
    });
    return OkStatus();
  });
  EXPECT_EQ(coordinator.Join(), OkStatus());
  EXPECT_TRUE(second) << "Join waits for both";
}

TEST(CoordinatorTest, OneThatGoesAwayStopsItsThreads) {
  std::atomic<int> ended = 0;
  {
    Coordinator coordinator;
    for (int i = 0; i < 3; ++i) coordinator.Start(UntilStopped(coordinator, &ended));
  }
  EXPECT_EQ(ended, 3);
}

// The coordinator's threads run on a SimScheduler, so all waits are on its simulated clock.
TEST(CoordinatorTest, TheFirstErrorEndsAll) {
  SimScheduler scheduler({.seed = 1});
  const int64_t start_ns = scheduler.now_ns();
  Status joined;
  int64_t joined_ns = 0;
  const Status ran = scheduler.Run([&] {
    Coordinator coordinator(scheduler);
    const auto fail_after = [&](int64_t millis) {
      coordinator.Start([&, millis] {
        scheduler.SleepUntil(start_ns + millis * kMilli);
        return Internal("after ", millis, " ms");
      });
    };
    fail_after(9);
    fail_after(5);
    coordinator.Start([&] {
      while (!coordinator.should_stop()) scheduler.SleepUntil(scheduler.now_ns() + kMilli);
      return coordinator.cancellation().status();
    });
    joined = coordinator.Join();
    joined_ns = scheduler.now_ns();
  });
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(joined, Internal("after 5 ms"));
  EXPECT_EQ(joined_ns - start_ns, 9 * kMilli);
}

}  // namespace
}  // namespace penstock::client
