// SPDX-License-Identifier: Apache-2.0
//
// Tests StopSignal with real signals to this process.
#include "client/stop_signal.h"

#include <signal.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

// Waits up to 30 s until the watcher thread has seen the signal. Returns whether it has seen it.
bool Requested(const StopSignal& stop) {
  const int64_t deadline_ns = Env::Real().NowNanos() + 30'000'000'000;
  while (!stop.requested() && Env::Real().NowNanos() < deadline_ns) std::this_thread::yield();
  return stop.requested();
}

TEST(StopSignalTest, ASignalIsARequestAndNoEnd) {
  for (const int signal : {SIGTERM, SIGINT}) {
    StopSignal stop(/*grace_seconds=*/3600);
    EXPECT_FALSE(stop.requested());
    ASSERT_EQ(raise(signal), 0);
    EXPECT_TRUE(Requested(stop));
    EXPECT_FALSE(stop.cancellation().cancelled()) << "within the grace";
  }
}

TEST(StopSignalTest, AfterTheGraceTheStepIsCancelled) {
  StopSignal stop(/*grace_seconds=*/0.001);
  ASSERT_EQ(raise(SIGTERM), 0);
  ASSERT_TRUE(Requested(stop));
  const int64_t deadline_ns = Env::Real().NowNanos() + 30'000'000'000;
  while (!stop.cancellation().cancelled() && Env::Real().NowNanos() < deadline_ns) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stop.cancellation().status(),
            Cancelled("the process was told to end, and the step did not end within 0.001 s"));
}

TEST(StopSignalTest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignal stop(3600);
        raise(SIGTERM);
        if (Requested(stop)) raise(SIGTERM);
        _exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
}

void Ignore(int) {}

TEST(StopSignalTest, PutsBackWhatItFound) {
  struct sigaction mine = {}, found = {};
  mine.sa_handler = Ignore;
  ASSERT_EQ(sigaction(SIGTERM, &mine, nullptr), 0);
  {
    StopSignal stop(1);
    ASSERT_EQ(sigaction(SIGTERM, nullptr, &found), 0);
    EXPECT_NE(found.sa_handler, Ignore);
  }
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &found), 0);
  EXPECT_EQ(found.sa_handler, Ignore);
  signal(SIGTERM, SIG_DFL);
}

TEST(StopSignalTest, ThereIsOneAtATime) {
  EXPECT_DEATH(
      {
        StopSignal first(1);
        StopSignal second(1);
      },
      "there is a StopSignal already");
}

}  // namespace
}  // namespace penstock::client
