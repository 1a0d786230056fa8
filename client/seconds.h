// SPDX-License-Identifier: Apache-2.0
//
// Conversions of the times in TrainingOptions, which are in seconds. Negative times count as 0, and
// times of more than a year as a year.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::client {

inline double LimitSeconds(double seconds) {
  constexpr double kMax = 365 * 24 * 3600;
  return std::min(kMax, std::max(0.0, seconds));
}
inline int64_t Millis(double seconds) { return static_cast<int64_t>(LimitSeconds(seconds) * 1e3); }
inline int64_t Nanos(double seconds) { return static_cast<int64_t>(LimitSeconds(seconds) * 1e9); }

}  // namespace penstock::client
