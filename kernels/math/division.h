// SPDX-License-Identifier: Apache-2.0
//
// Integer division that never crashes: INT_MIN / -1 wraps around. The CPU kernels look for zero
// divisors before the loops start (Invalid); on other devices a division by zero gives zero.
#pragma once

#include "kernels/engine/functor.h"

namespace penstock {

template <class T>
DEVICE_FN T TruncatedQuotient(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return static_cast<T>(-static_cast<Wrapping<T>>(x));
  }
  return y == 0 ? T(0) : static_cast<T>(x / y);
}

template <class T>
DEVICE_FN T TruncatedRemainder(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return 0;
  }
  return y == 0 ? T(0) : static_cast<T>(x % y);
}

// The base of functors that divide: its Invalid refuses zero divisors.
struct ChecksDivisor {
  template <class T>
  requires std::is_integral_v<T>
  static const char* Invalid(T y) { return y == 0 ? "Integer division by zero" : nullptr; }
};

}  // namespace penstock
