// SPDX-License-Identifier: Apache-2.0
//
// The direction numbers of Sobol sequences. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace penstock {

inline constexpr int kMaxSobolDimensions = 1111;
// The number of binary digits of a coordinate, enough for 2^31 points.
inline constexpr int kSobolDigits = 31;

// The direction numbers m_1, m_2, ... of one dimension; m_k is odd and less than 2^k.
using SobolDirections = std::array<uint32_t, kSobolDigits>;

// Returns the direction numbers of a dimension. REQUIRES: 0 <= dimension < kMaxSobolDimensions.
const SobolDirections& DirectionsOf(int dimension);

}  // namespace penstock
