// SPDX-License-Identifier: Apache-2.0
//
// Converts one number of any type to any other type, for Cast. A float that does not fit an integer
// type is converted as x86-64 does: integers of less than 32 bits wrap around, wider integers get
// the least number. The result is the same on every device and for every element of a tensor.
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
    // Converts through the narrowest signed integer type to which the processor converts. A direct
    // conversion could give other results in vectorised code than in the rest of a loop.
    using Via = std::conditional_t<(sizeof(To) < 4), int32_t,
                                   std::conditional_t<std::is_same_v<To, uint32_t>, int64_t, To>>;
    return static_cast<To>(static_cast<Via>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace penstock
