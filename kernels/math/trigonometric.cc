// SPDX-License-Identifier: Apache-2.0
//
// The ops Sin, Cos, Tan, their inverses, and Atan2.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct SinFn {
  static constexpr double kNanos = 0.5;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::sin;
    return sin(x);
  }
};

struct CosFn {
  static constexpr double kNanos = 0.5;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::cos;
    return cos(x);
  }
};

struct TanFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::tan;
    return tan(x);
  }
};

struct AsinFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::asin;
    return asin(x);
  }
};

struct AcosFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::acos;
    return acos(x);
  }
};

struct AtanFn {
  static constexpr double kNanos = 0.6;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::atan;
    return atan(x);
  }
};

struct Atan2Fn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T y, T x) const {
    return std::atan2(y, x);
  }
};

}  // namespace

OP(Sin) {
  return UnaryOp("The sine of x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients { return {g.dy() * Cos(Conj(g.x()))}; });
}
KERNEL(Sin, UnaryElementwise<SinFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Cos) {
  return UnaryOp("The cosine of x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients { return {-g.dy() * Sin(Conj(g.x()))}; });
}
KERNEL(Cos, UnaryElementwise<CosFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Tan) {
  return UnaryOp("The tangent of x.", kFloatingOrComplex, [](const GradientScope& g) -> Gradients {
    return {g.dy() * Square(Reciprocal(Cos(Conj(g.x()))))};
  });
}
KERNEL(Tan, UnaryElementwise<TanFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Asin) {
  return UnaryOp("The angle whose sine is x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {g.dy() * Reciprocal(Sqrt(1.0 - Square(Conj(g.x()))))};
                 });
}
KERNEL(Asin, UnaryElementwise<AsinFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Acos) {
  return UnaryOp("The angle whose cosine is x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {-g.dy() * Reciprocal(Sqrt(1.0 - Square(Conj(g.x()))))};
                 });
}
KERNEL(Acos, UnaryElementwise<AcosFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Atan) {
  return UnaryOp("The angle whose tangent is x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {g.dy() * Reciprocal(1.0 + Square(Conj(g.x())))};
                 });
}
KERNEL(Atan, UnaryElementwise<AtanFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Atan2) {
  return {
      .doc = "The angle of the point (x, y), in [-pi, pi].",
      .inputs = {{"y", "T"}, {"x", "T"}},
      .outputs = {{"z", "T"}},
      .types = {{"T", kFloating}},
      .shape = BroadcastShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        const Output y = g.x(0), x = g.x(1);
        const Output scaled = g.dy() / (Square(x) + Square(y));
        return SumToInputs(g, x * scaled, -y * scaled);
      },
      .reuses = Reuse::kAny,
  };
}
KERNEL(Atan2, BinaryElementwise<Atan2Fn>::Kernel, FLOATING_TYPES);

}  // namespace penstock
