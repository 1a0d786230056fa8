// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/call_estimate.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kQuickCall = CallEstimate::kQuickNanos / 4;
constexpr int64_t kSlowCall = CallEstimate::kSampleNanosMax / 4;
constexpr int64_t kInterruptedCall = 100 * CallEstimate::kSampleNanosMax;

// Makes calls that take `nanos` each; returns how many of them ran on the caller's thread.
int64_t RunCalls(CallEstimate& estimate, int64_t calls, int64_t nanos) {
  int64_t here = 0;
  for (int64_t i = 0; i < calls; ++i) {
    if (!estimate.RunsHere()) continue;
    estimate.Record(nanos);
    ++here;
  }
  return here;
}

TEST(CallEstimate, AQuickFunctionRunsOnTheCallersThread) {
  CallEstimate estimate;
  EXPECT_EQ(RunCalls(estimate, 1000, kQuickCall), 1000);
}

TEST(CallEstimate, ASlowFunctionIsTimedAFewTimesAndThenLessAndLessOften) {
  CallEstimate estimate;
  EXPECT_EQ(RunCalls(estimate, CallEstimate::kSamples, kSlowCall), CallEstimate::kSamples);
  EXPECT_EQ(RunCalls(estimate, CallEstimate::kFirstInterval, kSlowCall), 0);
  EXPECT_EQ(RunCalls(estimate, 1, kSlowCall), 1);
  EXPECT_EQ(RunCalls(estimate, 2 * CallEstimate::kFirstInterval, kSlowCall), 0);
  EXPECT_EQ(RunCalls(estimate, 1, kSlowCall), 1);
  EXPECT_LE(RunCalls(estimate, 100'000, kSlowCall), 35);
}

TEST(CallEstimate, OneInterruptedCallDoesNotMoveAQuickFunctionToThePool) {
  CallEstimate estimate;
  RunCalls(estimate, 100, kQuickCall);
  ASSERT_TRUE(estimate.RunsHere());
  estimate.Record(kInterruptedCall);
  EXPECT_EQ(RunCalls(estimate, 100, kQuickCall), 100);
}

TEST(CallEstimate, AQuickFunctionReturnsFromThePoolAfterInterruptions) {
  CallEstimate estimate;
  RunCalls(estimate, 100, kQuickCall);
  RunCalls(estimate, 10, kInterruptedCall);
  ASSERT_FALSE(estimate.RunsHere());
  RunCalls(estimate, 2 * CallEstimate::kFirstInterval, kQuickCall);
  EXPECT_EQ(RunCalls(estimate, 1000, kQuickCall), 1000);
}

TEST(CallEstimate, AnInterruptedFirstCallIsTimedAgain) {
  CallEstimate estimate;
  ASSERT_TRUE(estimate.RunsHere());
  estimate.Record(kInterruptedCall);
  EXPECT_EQ(RunCalls(estimate, CallEstimate::kFirstInterval, kQuickCall), 0);
  EXPECT_EQ(RunCalls(estimate, 1000, kQuickCall), 1000);
}

}  // namespace
}  // namespace penstock
