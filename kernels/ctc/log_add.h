// SPDX-License-Identifier: Apache-2.0
//
// Sums of probabilities that are kept as logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// Returns log(exp(a) + exp(b)) without overflow.
inline double LogAdd(double a, double b) {
  if (a == kLogZero) return b;
  if (b == kLogZero) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace penstock
