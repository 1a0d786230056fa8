// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/clock_offset.h"

#include <random>

#include "core/base/testing/durations.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(ClockOffsetTest, NothingIsKnownBeforeTheFirstReading) {
  EXPECT_FALSE(ClockOffset().best().has_value());
}

TEST(ClockOffsetTest, TheErrorIsHalfOfTheSmallestRoundTrip) {
  ClockOffset clock;
  // The other clock is 500 ms ahead. The answer takes longer than the question.
  const int64_t wall = 7'000 * kMilli;
  clock.Add(0, 10 * kMilli, wall + 10 * kMilli, wall + 502 * kMilli);
  EXPECT_EQ(clock.best()->offset_ns, 497 * kMilli);
  EXPECT_EQ(clock.best()->error_ns, 5 * kMilli + 1'000);
  clock.Add(20 * kMilli, 22 * kMilli, wall + 22 * kMilli, wall + 521 * kMilli);
  EXPECT_EQ(clock.best()->offset_ns, 500 * kMilli);
  EXPECT_EQ(clock.best()->error_ns, 1 * kMilli + 1'000);
  EXPECT_EQ(clock.best()->at_ns, 22 * kMilli);
  clock.Add(30 * kMilli, 34 * kMilli, wall + 34 * kMilli, wall + 531 * kMilli);
  EXPECT_EQ(clock.best()->error_ns, 1 * kMilli + 1'000) << "a longer round trip tells no more";
}

TEST(ClockOffsetTest, TheTrueOffsetIsWithinTheError) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> delay(1, 3 * kMilli);
  const int64_t offset = -123'456'789;
  ClockOffset clock;
  int64_t now = 0;
  for (int i = 0; i < 1'000; ++i) {
    const int64_t sent = now, asked = sent + delay(random), answered = asked + delay(random);
    clock.Add(sent, answered, answered, asked + offset);
    EXPECT_LE(std::abs(clock.best()->offset_ns - offset), clock.best()->error_ns);
    now += 100 * kMilli;
  }
  EXPECT_LT(clock.best()->error_ns, kMilli);
}

TEST(ClockOffsetTest, ReadingsFromBeforeAClockWasSetAreDropped) {
  ClockOffset clock;
  clock.Add(0, 2 * kMilli, 2 * kMilli, 1 * kMilli);
  clock.Add(10 * kMilli, 20 * kMilli, 20 * kMilli, 5'015 * kMilli);
  EXPECT_EQ(clock.best()->offset_ns, 5'000 * kMilli);
  EXPECT_EQ(clock.best()->error_ns, 5 * kMilli + 1'000);
}

TEST(ClockOffsetTest, OldReadingsAreForgotten) {
  ClockOffset clock;
  clock.Add(0, 2 * kMilli, 2 * kMilli, 1 * kMilli);
  for (int64_t i = 1; i <= static_cast<int64_t>(ClockOffset::kKept); ++i) {
    const int64_t sent = i * 100 * kMilli;
    EXPECT_EQ(clock.best()->error_ns, kMilli + 1'000);
    clock.Add(sent, sent + 8 * kMilli, sent + 8 * kMilli, sent + 4 * kMilli);
  }
  EXPECT_EQ(clock.best()->error_ns, 4 * kMilli + 1'000);
}

}  // namespace
}  // namespace penstock
