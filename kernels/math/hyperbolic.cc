// SPDX-License-Identifier: Apache-2.0
//
// The ops Sinh, Cosh, Tanh, their inverses, and TanhGrad.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct SinhFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::sinh;
    return sinh(x);
  }
};

struct CoshFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::cosh;
    return cosh(x);
  }
};

struct TanhFn {
  static constexpr double kNanos = 0.8;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::tanh;
    return tanh(x);
  }
};

struct AsinhFn {
  static constexpr double kNanos = 2;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::asinh;
    return asinh(x);
  }
};

struct AcoshFn {
  static constexpr double kNanos = 2;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::acosh;
    return acosh(x);
  }
};

struct AtanhFn {
  static constexpr double kNanos = 2;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::atanh;
    return atanh(x);
  }
};

struct TanhGradFn {
  template <class T>
  DEVICE_FN T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};

}  // namespace

OP(Sinh) {
  return UnaryOp(
      "The hyperbolic sine of x.", kFloatingOrComplex,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Call("Cosh", {Conj(g.x())})}; });
}
KERNEL(Sinh, UnaryElementwise<SinhFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Cosh) {
  return UnaryOp(
      "The hyperbolic cosine of x.", kFloatingOrComplex,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Call("Sinh", {Conj(g.x())})}; });
}
KERNEL(Cosh, UnaryElementwise<CoshFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Tanh) {
  return UnaryOp("The hyperbolic tangent of x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {Call("TanhGrad", {Conj(g.y()), g.dy()})};
                 });
}
KERNEL(Tanh, UnaryElementwise<TanhFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(TanhGrad) {
  return GradientOp("dy * (1 - y^2): the gradient of Tanh, from its output.", kFloatingOrComplex,
                    [](const GradientScope& g) -> Gradients {
                      const Output y = Conj(g.x(0)), dy = Conj(g.x(1));
                      return {g.dy() * -2.0 * dy * y, Call("TanhGrad", {y, g.dy()})};
                    });
}
KERNEL(TanhGrad, BinaryElementwise<TanhGradFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Asinh) {
  return UnaryOp(
      "The number whose hyperbolic sine is x.", kFloatingOrComplex,
      [](const GradientScope& g) -> Gradients { return {g.dy() / Call("Cosh", {Conj(g.y())})}; });
}
KERNEL(Asinh, UnaryElementwise<AsinhFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Acosh) {
  return WithExamples({{.inputs = {{{{2, 2}, {1.5, 2, 3, 7}}}}}},
                      UnaryOp("The number whose hyperbolic cosine is x.", kFloatingOrComplex,
                              [](const GradientScope& g) -> Gradients {
                                return {g.dy() / Call("Sinh", {Conj(g.y())})};
                              }));
}
KERNEL(Acosh, UnaryElementwise<AcoshFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Atanh) {
  return UnaryOp("The number whose hyperbolic tangent is x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {g.dy() * Reciprocal(1.0 - Square(Conj(g.x())))};
                 });
}
KERNEL(Atanh, UnaryElementwise<AtanhFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
