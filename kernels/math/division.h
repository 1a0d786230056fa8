// SPDX-License-Identifier: Apache-2.0
//
// Integer division that no operand can crash: of INT_MIN by -1 it wraps around; dividing by zero is
// found before the loops start (Invalid), and where it could not be, it gives zero.
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

// The base of functors that divide.
struct ChecksDivisor {
  template <class T>
  requires std::is_integral_v<T>
  static const char* Invalid(T y) { return y == 0 ? "Integer division by zero" : nullptr; }
};

}  // namespace penstock
