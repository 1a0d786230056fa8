// SPDX-License-Identifier: Apache-2.0
//
// Functors that compute a = a op b for every element type. Integers wrap around.
#pragma once

#include <cstdint>
#include <type_traits>

namespace penstock {

// Returns fn(a, b). Integers are passed as unsigned 64-bit numbers: sums, differences and products
// are then correct modulo 2^n, and nothing overflows.
template <class T, class Fn>
T Wrapping(const T& a, const T& b, Fn fn) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(fn(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return fn(a, b);
  }
}

struct AddTo {
  template <class T>
  static void Apply(T& a, const T& b) {
    a = Wrapping(a, b, [](const auto& x, const auto& y) { return x + y; });
  }
};

struct SubtractFrom {
  template <class T>
  static void Apply(T& a, const T& b) {
    a = Wrapping(a, b, [](const auto& x, const auto& y) { return x - y; });
  }
};

struct MultiplyBy {
  template <class T>
  static void Apply(T& a, const T& b) {
    a = Wrapping(a, b, [](const auto& x, const auto& y) { return x * y; });
  }
};

// Computes a /= b. REQUIRES: b != 0 for integers.
struct DivideBy {
  template <class T>
  static void Apply(T& a, const T& b) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      // The least number divided by -1 does not fit in T, so it wraps around to itself.
      a = b == T(-1) ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a))
                     : static_cast<T>(a / b);
    } else {
      a = static_cast<T>(a / b);
    }
  }
};

struct AssignMin {
  template <class T>
  static void Apply(T& a, const T& b) {
    if (b < a) a = b;
  }
};

struct AssignMax {
  template <class T>
  static void Apply(T& a, const T& b) {
    if (a < b) a = b;
  }
};

}  // namespace penstock
