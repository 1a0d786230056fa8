// SPDX-License-Identifier: Apache-2.0
//
// Timeouts as clients give them: milliseconds, any 64-bit number. Deadlines are made of them here,
// so that none overflows.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

// A year. Longer timeouts end after a year as well.
inline constexpr int64_t kTimeoutMsMax = int64_t{365} * 24 * 3600 * 1000;

// Returns `timeout_ms`, or the nearest of 0 and kTimeoutMsMax.
inline int64_t LimitTimeout(int64_t timeout_ms) {
  return std::clamp<int64_t>(timeout_ms, 0, kTimeoutMsMax);
}

inline int64_t TimeoutNanos(int64_t timeout_ms) { return LimitTimeout(timeout_ms) * 1'000'000; }

}  // namespace penstock
