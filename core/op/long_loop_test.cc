// SPDX-License-Identifier: Apache-2.0
#include "core/op/long_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/base/forwarding_env.h"
#include "core/base/thread_pool.h"

namespace penstock {
namespace {

constexpr double kUnitNanos = 1e6;  // two units per block

// Uses one thread, so that the order of blocks is known.
class LongLoopTest : public ::testing::Test {
 protected:
  struct Clock final : ForwardingEnv {
    Clock() : ForwardingEnv(Env::Real()) {}
    int64_t NowNanos() override { return now; }
    int64_t now = 100;
  };

  ThreadPool threads_{"test", 1};
  Clock clock_;
  Cancellation cancellation_;
  StepContext step_{
      .step_id = 5, .cancellation = &cancellation_, .threads = &threads_, .env = &clock_};
};

TEST_F(LongLoopTest, CoversAllUnitsOnce) {
  ThreadPool several("several", 3);
  step_.threads = &several;
  std::vector<std::atomic<int>> seen(1001);
  EXPECT_EQ(LongLoop(step_, 1001, kUnitNanos,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) ++seen[i];
                     }),
            OkStatus());
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

TEST_F(LongLoopTest, EndsAfterTheBlockInWhichItsStepIsCancelled) {
  int64_t units = 0;
  const Status status = LongLoop(step_, 1000, kUnitNanos, [&](int64_t begin, int64_t end) {
    units += end - begin;
    if (begin == 4) cancellation_.Cancel(Aborted("elsewhere"));
  });
  EXPECT_EQ(status, Aborted("elsewhere"));
  EXPECT_EQ(units, 6);
}

TEST_F(LongLoopTest, EndsAtTheDeadline) {
  step_.deadline_ns = 1'000;
  int64_t units = 0;
  const Status status = LongLoop(step_, 1000, kUnitNanos, [&](int64_t begin, int64_t end) {
    units += end - begin;
    clock_.now += 300;
  });
  EXPECT_EQ(status, DeadlineExceeded("step 5 did not end before its deadline"));
  EXPECT_EQ(units, 6);
}

TEST_F(LongLoopTest, WhatIsDoneInOneBlockIsNotInterrupted) {
  cancellation_.Cancel(Aborted("elsewhere"));
  bool ran = false;
  EXPECT_EQ(LongLoop(step_, 2, kUnitNanos, [&](int64_t, int64_t) { ran = true; }), OkStatus());
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace penstock
