// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator.h"

#include "core/base/sim/sim_scheduler.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr int64_t kMilli = 1'000'000;

// All threads and the wait for them are on the scheduler given: these share one thread and a
// simulated clock.
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

TEST(CoordinatorTest, TheEndOfTheInputIsAGoodEnd) {
  SimScheduler scheduler({.seed = 1});
  const Status ran = scheduler.Run([&] {
    Coordinator coordinator(scheduler);
    coordinator.Start([] { return OutOfRange("no more"); });
    EXPECT_TRUE(coordinator.Join().ok());
    EXPECT_EQ(coordinator.cancellation().status(), Cancelled("a stop was requested: no more"));
  });
  ASSERT_TRUE(ran.ok()) << ran;
}

}  // namespace
}  // namespace penstock::client
