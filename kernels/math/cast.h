// SPDX-License-Identifier: Apache-2.0
//
// One number of any type as one of any other, as Cast does it. Floats that do not fit an integer
// give what x86-64 gives (wrapped for narrow types, the least number for wide ones), on every
// device and at every place of a tensor.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/engine/functor.h"

namespace penstock {

template <class To, class From>
DEVICE_FN To CastTo(From x) {
  if constexpr (kIsComplex<From> && kIsComplex<To>) {
    using F = Real<To>;
    return To(static_cast<F>(x.real()), static_cast<F>(x.imag()));
  } else if constexpr (kIsComplex<From>) {
    return CastTo<To>(x.real());
  } else if constexpr (kIsComplex<To>) {
    return To(CastTo<Real<To>>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // By way of the narrowest signed integer that the processor converts to: the type itself may
    // take another way in vector code than in the rest of a loop.
    using Via = std::conditional_t<(sizeof(To) < 4), int32_t,
                                   std::conditional_t<std::is_same_v<To, uint32_t>, int64_t, To>>;
    return static_cast<To>(static_cast<Via>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace penstock
