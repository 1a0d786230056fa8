// SPDX-License-Identifier: Apache-2.0
//
// Xlogy, Xlog1py and Xdivy: products that are zero if x is zero, for entropies and likelihoods.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct XlogyFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    using std::log;
    const T product = x * log(y);
    return x == T(0) ? T(0) : product;
  }
};

// For 16-bit types, which kernels compute in float: rounds the logarithm to T before it multiplies,
// so that the result is the same as with two ops, x * log(y).
template <class T>
struct RoundedXlogyFn {
  static constexpr double kNanos = 0.8;
  DEVICE_FN float operator()(float x, float y) const {
    const float product = x * static_cast<float>(T(std::log(y)));
    return x == 0 ? 0 : product;
  }
};

struct Xlog1pyFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    using std::log;
    if constexpr (kIsComplex<T>) {
      return x == T(0) ? T(0) : x * log(T(1) + y);
    } else {
      const T product = x * std::log1p(y);
      return x == T(0) ? T(0) : product;
    }
  }
};

template <class T>
struct RoundedXlog1pyFn {
  static constexpr double kNanos = 1.2;
  DEVICE_FN float operator()(float x, float y) const {
    const float product = x * static_cast<float>(T(std::log1p(y)));
    return x == 0 ? 0 : product;
  }
};

struct XdivyFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    const T quotient = x / y;
    return x == T(0) ? T(0) : quotient;
  }
};

Output IsNonzero(Output x) { return Cast(Call("NotEqual", {x, ZerosLike(x)}), x.dtype()); }

}  // namespace

OP(Xlogy) {
  return BinaryOp("x * log(y), but zero wherever x is zero.", kFloatingOrComplex,
                  [](const GradientScope& g) -> Gradients {
                    const Output x = g.x(0), y = g.x(1);
                    return SumToInputs(g, g.dy() * Conj(Call("Xlogy", {IsNonzero(x), y})),
                                       g.dy() * Conj(Call("Xdivy", {x, y})));
                  });
}
KERNEL(Xlogy, BinaryElementwise<XlogyFn>::Kernel, float, double, COMPLEX_TYPES);
KERNEL(Xlogy, BinaryElementwise<RoundedXlogyFn<half>>::Kernel, half);
KERNEL(Xlogy, BinaryElementwise<RoundedXlogyFn<bfloat16>>::Kernel, bfloat16);

OP(Xlog1py) {
  return BinaryOp("x * log(1 + y), but zero wherever x is zero.", kFloatingOrComplex,
                  [](const GradientScope& g) -> Gradients {
                    const Output x = g.x(0), y = g.x(1);
                    return SumToInputs(g, g.dy() * Conj(Call("Xlog1py", {IsNonzero(x), y})),
                                       g.dy() * Conj(Call("Xdivy", {x, y + 1.0})));
                  });
}
KERNEL(Xlog1py, BinaryElementwise<Xlog1pyFn>::Kernel, float, double, COMPLEX_TYPES);
KERNEL(Xlog1py, BinaryElementwise<RoundedXlog1pyFn<half>>::Kernel, half);
KERNEL(Xlog1py, BinaryElementwise<RoundedXlog1pyFn<bfloat16>>::Kernel, bfloat16);

OP(Xdivy) {
  return BinaryOp("x / y, but zero wherever x is zero.", kFloatingOrComplex,
                  [](const GradientScope& g) -> Gradients {
                    const Output x = g.x(0), y = g.x(1);
                    return SumToInputs(g, g.dy() * Conj(Call("Xdivy", {IsNonzero(x), y})),
                                       g.dy() * Conj(Call("Xdivy", {-x, Square(y)})));
                  });
}
KERNEL(Xdivy, BinaryElementwise<XdivyFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
