// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/clock_offset.h"

#include <algorithm>
#include <cstdlib>

namespace penstock {

void ClockOffset::Add(int64_t sent_ns, int64_t received_ns, int64_t own_wall_ns,
                      int64_t other_wall_ns) {
  const int64_t half_ns = std::max<int64_t>(0, received_ns - sent_ns) / 2;
  const Reading reading{.offset_ns = other_wall_ns - (own_wall_ns - half_ns),
                        .error_ns = half_ns + kResolutionNanos,
                        .at_ns = received_ns};
  const std::optional<Reading> known = best();
  // The ranges of two readings overlap unless a clock was set or has drifted in between.
  if (known.has_value() &&
      std::abs(known->offset_ns - reading.offset_ns) > known->error_ns + reading.error_ns) {
    count_ = 0;
    next_ = 0;
  }
  readings_[next_] = reading;
  next_ = (next_ + 1) % kKept;
  count_ = std::min(count_ + 1, kKept);
}

std::optional<ClockOffset::Reading> ClockOffset::best() const {
  if (count_ == 0) return std::nullopt;
  return *std::min_element(
      readings_.begin(), readings_.begin() + static_cast<ptrdiff_t>(count_),
      [](const Reading& a, const Reading& b) { return a.error_ns < b.error_ns; });
}

}  // namespace penstock
