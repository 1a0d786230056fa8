// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a type that is known only at run time: VisitType turns a DType into a C++ type, and
// Represents tells which values a type can hold.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/tensor/dtype.h"

namespace penstock {

// Calls visit.operator()<T>() for the type T among Ts whose DType is `dtype`, and returns true.
// Returns false if `dtype` is not among them.
//
//   const bool is_real = VisitType<REAL_TYPES>(dtype, [&]<class T>() { ... });
template <class... Ts, class Visit>
bool VisitType(DType dtype, Visit visit) {
  return ((dtype == kDTypeOf<Ts> && (visit.template operator()<Ts>(), true)) || ...);
}

// Returns whether T can hold `value`: a floating-point type may round it, an integer type may not.
template <class T, class From>
bool Represents(From value) {
  if constexpr (!std::is_integral_v<T>) {
    return true;
  } else if constexpr (std::is_integral_v<From>) {
    return std::in_range<T>(value);
  } else {
    using Limits = std::numeric_limits<T>;
    // Compares with max + 1, which a double holds exactly, because converting max to double may
    // round it.
    const double end = 2.0 * (Limits::max() / 2 + 1);
    return value >= static_cast<double>(Limits::min()) && value < end && value == std::trunc(value);
  }
}

}  // namespace penstock
