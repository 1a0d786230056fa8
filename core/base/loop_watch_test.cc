// SPDX-License-Identifier: Apache-2.0
//
// Tests that loops of ParallelFor end when their watch says so.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/base/guarded.h"
#include "core/base/thread_pool.h"

namespace penstock {
namespace {

constexpr double kUnitNanos = 1e6;  // two units per block

struct Watch final : LoopWatch {
  Status CheckContinues() const override { return ended ? Aborted("elsewhere") : OkStatus(); }
  std::atomic<bool> ended{false};
};

// Uses one thread, so that the order of blocks is known.
class LoopWatchTest : public ::testing::Test {
 protected:
  Status Loop(int64_t total, Scheduler::Range fn) {
    return Guarded([&] {
      threads_.ParallelFor(total, kUnitNanos, fn);
      return OkStatus();
    });
  }
  ThreadPool threads_{"test", 1};
  Watch watch_;
};

TEST_F(LoopWatchTest, AWatchedLoopCoversAllUnitsOnce) {
  const WatchedLoops watched(&watch_);
  ThreadPool several("several", 3);
  std::vector<std::atomic<int>> seen(1001);
  several.ParallelFor(1001, kUnitNanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[i];
  });
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

TEST_F(LoopWatchTest, ALoopEndsAfterTheBlockInWhichItsWatchEndsIt) {
  const WatchedLoops watched(&watch_);
  int64_t units = 0;
  const Status status = Loop(1000, [&](int64_t begin, int64_t end) {
    units += end - begin;
    if (begin == 4) watch_.ended = true;
  });
  EXPECT_EQ(status, Aborted("elsewhere"));
  EXPECT_EQ(units, 6);
}

TEST_F(LoopWatchTest, WhatFitsInOneBlockIsNotGivenUp) {
  watch_.ended = true;
  const WatchedLoops watched(&watch_);
  int64_t units = 0;
  EXPECT_EQ(Loop(2, [&](int64_t begin, int64_t end) { units += end - begin; }), OkStatus());
  EXPECT_EQ(units, 2);
}

TEST_F(LoopWatchTest, HelpersEndToo) {
  const WatchedLoops watched(&watch_);
  ThreadPool several("several", 3);
  std::atomic<int64_t> units{0};
  EXPECT_THROW(several.ParallelFor(1'000'000, kUnitNanos,
                                   [&](int64_t begin, int64_t end) {
                                     units += end - begin;
                                     watch_.ended = true;
                                   }),
               LoopEnded);
  EXPECT_LE(units, 3 * 2 * 2);
}

TEST_F(LoopWatchTest, ALoopInsideOfAHelpersBlockIsWatched) {
  const WatchedLoops watched(&watch_);
  ThreadPool several("several", 3);
  std::atomic<int> unwatched{0};
  several.ParallelFor(12, kUnitNanos, [&](int64_t, int64_t) {
    if (WatchedLoops::current() != &watch_) ++unwatched;
  });
  EXPECT_EQ(unwatched, 0);
}

TEST_F(LoopWatchTest, OutsideOfTheScopeLoopsRunToTheirEnd) {
  watch_.ended = true;
  { const WatchedLoops watched(&watch_); }
  int64_t units = 0;
  const auto count = [&](int64_t begin, int64_t end) { units += end - begin; };
  EXPECT_EQ(Loop(100, count), OkStatus());
  EXPECT_EQ(units, 100);
  const WatchedLoops watched(&watch_);
  const WatchedLoops unwatched(nullptr);
  EXPECT_EQ(Loop(100, count), OkStatus());
  EXPECT_EQ(units, 200);
}

}  // namespace
}  // namespace penstock
