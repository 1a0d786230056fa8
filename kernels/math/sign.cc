// SPDX-License-Identifier: Apache-2.0
//
// Abs, Neg, Sign.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct NegFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(-static_cast<Wrapping<T>>(x));
    } else {
      return -x;
    }
  }
};

// The least integer has no positive counterpart and is unchanged.
struct AbsFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? NegFn()(x) : x;
    } else {
      return std::abs(x);
    }
  }
};

// NaN stays NaN; a complex number is divided by its absolute value.
struct SignFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (kIsComplex<T>) {
      using std::abs;
      const auto size = abs(x);
      return size == 0 ? T(0) : x / size;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>((x > 0) - (x < 0));
    } else {
      return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
    }
  }
};

}  // namespace

OP(Abs) {
  return UnaryOp("The absolute value of x.", kSignedReal,
                 [](const GradientScope& g) -> Gradients { return {g.dy() * Sign(g.x())}; });
}
KERNEL(Abs, UnaryElementwise<AbsFn>::Kernel, SIGNED_REAL_TYPES);

OP(Neg) {
  return UnaryOp("y = -x.", kSignedNumber,
                 [](const GradientScope& g) -> Gradients { return {-g.dy()}; });
}
KERNEL(Neg, UnaryElementwise<NegFn>::Kernel, SIGNED_NUMBER_TYPES);

OP(Sign) {
  return UnaryOp("-1, 0 or 1 as x is negative, zero or positive; x / |x| of complex numbers.",
                 kSignedNumber,
                 [](const GradientScope& g) -> Gradients { return {ZerosLike(g.x())}; });
}
KERNEL(Sign, UnaryElementwise<SignFn>::Kernel, SIGNED_NUMBER_TYPES);

}  // namespace penstock
