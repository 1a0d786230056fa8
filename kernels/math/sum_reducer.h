// SPDX-License-Identifier: Apache-2.0
//
// SumReducer: the reducer of sums, for the loops of kernels/engine/reduction.h.
#pragma once

#include "kernels/engine/reduction.h"

namespace penstock {
inline namespace PENSTOCK_PASS {

struct SumReducer {
  static constexpr bool kReturnsSingleElement = true;
  template <class T>
  using Accumulator = Wide<T>;
  template <class A>
  DEVICE_FN static A Identity() {
    return A(0);
  }
  template <class A, class T>
  DEVICE_FN static A Add(A a, T x) {
    return a + A(x);
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return a + b;
  }
  template <class T, class A>
  DEVICE_FN static T Finish(A a, int64_t) {
    return static_cast<T>(a);
  }
};

}  // namespace PENSTOCK_PASS
}  // namespace penstock
