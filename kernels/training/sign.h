// SPDX-License-Identifier: Apache-2.0
//
// Signs and soft thresholds of real numbers.
#pragma once

#include <cmath>

namespace penstock {

template <class C>
C Sign(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : C(0);
}

// x moved towards 0 by rate * l1, and 0 where it is nearer than that. An l1 that is not positive
// leaves x alone.
template <class C>
C Shrink(C x, C rate, C l1) {
  const C rest = std::abs(x) - rate * l1;
  return l1 > C(0) ? (rest > C(0) ? Sign(x) * rest : C(0)) : x;
}

}  // namespace penstock
