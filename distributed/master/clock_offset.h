// SPDX-License-Identifier: Apache-2.0
//
// ClockOffset: estimates by how much another task's wall clock is ahead of this task's. It uses
// requests whose answers carry the other clock's time. Not thread-safe.
//
// The other clock was read at some moment between the question and its answer. So the offset is
// known with an error of half the round trip, plus the clocks' resolution; the reading with the
// shortest round trip is the best one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock {

class ClockOffset {
 public:
  static constexpr size_t kKept = 32;
  static constexpr int64_t kResolutionNanos = 1'000;  // resolution of Env::WallMicros

  struct Reading {
    int64_t offset_ns = 0;  // the other clock's time minus this one's
    int64_t error_ns = 0;   // the true offset differs by at most this much
    int64_t at_ns = 0;      // when it was taken, by the Env's monotonic clock
  };

  // Adds a reading. The question was sent at `sent_ns` and answered at `received_ns`, by the
  // monotonic clock. `own_wall_ns` is this task's wall clock when the answer arrived,
  // `other_wall_ns` the other task's wall clock when it answered.
  void Add(int64_t sent_ns, int64_t received_ns, int64_t own_wall_ns, int64_t other_wall_ns);
  // Returns the best of the last kKept readings; nullopt before the first. Ignores readings that
  // contradict newer ones: since then, a clock was set or has drifted.
  std::optional<Reading> best() const;

 private:
  std::array<Reading, kKept> readings_;
  size_t count_ = 0;  // number of valid entries in readings_
  size_t next_ = 0;
};

}  // namespace penstock
