// SPDX-License-Identifier: Apache-2.0
//
// The functor of addition, for Add, AddN and other sums: integers wrap around.
#pragma once

#include "kernels/engine/functor.h"

namespace penstock {

struct AddFn {
  template <class T>
  DEVICE_FN T operator()(const T& x, const T& y) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
    } else {
      return x + y;  // strings are concatenated
    }
  }
};

}  // namespace penstock
