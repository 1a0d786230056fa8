// SPDX-License-Identifier: Apache-2.0
//
// The ops Exp, Expm1, Log, Log1p, Sigmoid and SigmoidGrad.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct ExpFn {
  static constexpr double kNanos = 0.5;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::exp;
    return exp(x);
  }
};

struct LogFn {
  static constexpr double kNanos = 0.5;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::log;
    return log(x);
  }
};

// The complex version is accurate near zero, too.
struct Expm1Fn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (kIsComplex<T>) {
      using F = Real<T>;
      const F half_sin = std::sin(x.imag() / 2);
      const F growth = std::expm1(x.real());
      return T(growth * std::cos(x.imag()) - 2 * half_sin * half_sin,
               (growth + 1) * std::sin(x.imag()));
    } else {
      return std::expm1(x);
    }
  }
};

struct Log1pFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (kIsComplex<T>) {
      using std::log;
      const T near_one = T(1) + x;
      // log |1 + x| = log1p(2 re + |x|^2) / 2, without the rounding error of 1 + x.
      const Real<T> re = x.real(), im = x.imag();
      if (std::abs(re) + std::abs(im) > Real<T>(0.5)) return log(near_one);
      return T(std::log1p((2 + re) * re + im * im) / 2, std::atan2(im, near_one.real()));
    } else {
      return std::log1p(x);
    }
  }
};

struct SigmoidFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::exp;
    return T(1) / (T(1) + exp(-x));
  }
};

struct SigmoidGradFn {
  template <class T>
  DEVICE_FN T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};

}  // namespace

OP(Exp) {
  return UnaryOp("y = e^x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients { return {g.dy() * Conj(g.y())}; });
}
KERNEL(Exp, UnaryElementwise<ExpFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Expm1) {
  return UnaryOp("y = e^x - 1, accurate near zero.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients { return {g.dy() * Exp(Conj(g.x()))}; });
}
KERNEL(Expm1, UnaryElementwise<Expm1Fn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Log) {
  return UnaryOp(
      "The natural logarithm of x.", kFloatingOrComplex,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Reciprocal(Conj(g.x()))}; });
}
KERNEL(Log, UnaryElementwise<LogFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Log1p) {
  return UnaryOp(
      "The natural logarithm of 1 + x, accurate near zero.", kFloatingOrComplex,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Reciprocal(1.0 + Conj(g.x()))}; });
}
KERNEL(Log1p, UnaryElementwise<Log1pFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Sigmoid) {
  return UnaryOp("y = 1 / (1 + e^-x).", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {Call("SigmoidGrad", {Conj(g.y()), g.dy()})};
                 });
}
KERNEL(Sigmoid, UnaryElementwise<SigmoidFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(SigmoidGrad) {
  return GradientOp("dy * y * (1 - y): the gradient of Sigmoid, from its output.",
                    kFloatingOrComplex, [](const GradientScope& g) -> Gradients {
                      const Output y = Conj(g.x(0)), dy = Conj(g.x(1));
                      return {g.dy() * dy * (1.0 - 2.0 * y), Call("SigmoidGrad", {y, g.dy()})};
                    });
}
KERNEL(SigmoidGrad, BinaryElementwise<SigmoidGradFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
