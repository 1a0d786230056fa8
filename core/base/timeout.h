// SPDX-License-Identifier: Apache-2.0
//
// Limits timeouts so that computing a deadline does not overflow: a client may send any 64-bit
// number of milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

// A year. A longer timeout counts as a year.
inline constexpr int64_t kTimeoutMsMax = int64_t{365} * 24 * 3600 * 1000;

// Returns `timeout_ms`, clamped to [0, kTimeoutMsMax].
inline int64_t LimitTimeout(int64_t timeout_ms) {
  return std::clamp<int64_t>(timeout_ms, 0, kTimeoutMsMax);
}

inline int64_t TimeoutNanos(int64_t timeout_ms) { return LimitTimeout(timeout_ms) * 1'000'000; }

}  // namespace penstock
