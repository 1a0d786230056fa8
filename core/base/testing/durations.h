// SPDX-License-Identifier: Apache-2.0
//
// Durations, in nanoseconds, for tests that count time in milliseconds.
#pragma once

#include <cstdint>

namespace penstock {

inline constexpr int64_t kMilli = 1'000'000;

}  // namespace penstock
