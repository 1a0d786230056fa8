// SPDX-License-Identifier: Apache-2.0
//
// Sign and soft threshold functions of real numbers.
#pragma once

#include <cmath>

namespace penstock {

template <class C>
C Sign(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : C(0);
}

// Returns x moved towards 0 by rate * l1, or 0 if x is nearer to 0 than that. Returns x if l1 is
// not positive.
template <class C>
C Shrink(C x, C rate, C l1) {
  const C rest = std::abs(x) - rate * l1;
  return l1 > C(0) ? (rest > C(0) ? Sign(x) * rest : C(0)) : x;
}

}  // namespace penstock
