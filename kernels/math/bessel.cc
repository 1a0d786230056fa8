// SPDX-License-Identifier: Apache-2.0
//
// Bessel functions of orders zero and one: of the first kind (J), the second (Y), and modified (I,
// K), the modified functions also scaled by e^-|x| or e^x (I0e ...). The functions are Eigen's.
#include <unsupported/Eigen/SpecialFunctions>

#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

#define BESSEL_FN(Name, function)                 \
  struct Name##Fn {                               \
    static constexpr double kNanos = 30;          \
    template <class T>                            \
    T operator()(T x) const {                     \
      return Eigen::numext::bessel_##function(x); \
    }                                             \
  };                                              \
  KERNEL(Bessel##Name, UnaryElementwise<Name##Fn>::Kernel, FLOATING_TYPES)

Output Of(const char* op, const GradientScope& g) { return Call(op, {g.x()}); }

// Returns `derivative`, but 1/2 where x is zero: derivatives of order one have a term f(x) / x,
// whose limit at zero is 1/2.
Output HalfAtZero(const GradientScope& g, Output derivative) {
  const Output zero = ZerosLike(g.x());
  return Call("SelectV2", {Equal(g.x(), zero), zero + 0.5, derivative});
}

OpDef BesselOp(const char* doc, GradientFn gradient) {
  return UnaryOp(doc, kFloating, std::move(gradient));
}

}  // namespace

OP(BesselI0) {
  return BesselOp("The modified Bessel function of the first kind of order zero.",
                  [](const GradientScope& g) -> Gradients { return {g.dy() * Of("BesselI1", g)}; });
}

OP(BesselI1) {
  return BesselOp("The modified Bessel function of the first kind of order one.",
                  [](const GradientScope& g) -> Gradients {
                    return {g.dy() * HalfAtZero(g, Of("BesselI0", g) - g.y() / g.x())};
                  });
}

OP(BesselI0e) {
  return BesselOp("BesselI0 times e^-|x|.", [](const GradientScope& g) -> Gradients {
    return {g.dy() * (Of("BesselI1e", g) - Sign(g.x()) * g.y())};
  });
}

OP(BesselI1e) {
  return BesselOp("BesselI1 times e^-|x|.", [](const GradientScope& g) -> Gradients {
    const Output slope = Sign(g.x()) + Reciprocal(g.x());
    return {g.dy() * HalfAtZero(g, Of("BesselI0e", g) - g.y() * slope)};
  });
}

OP(BesselK0) {
  return BesselOp(
      "The modified Bessel function of the second kind of order zero.",
      [](const GradientScope& g) -> Gradients { return {-g.dy() * Of("BesselK1", g)}; });
}

OP(BesselK1) {
  return BesselOp("The modified Bessel function of the second kind of order one.",
                  [](const GradientScope& g) -> Gradients {
                    return {-g.dy() * (Of("BesselK0", g) + g.y() / g.x())};
                  });
}

OP(BesselK0e) {
  return BesselOp("BesselK0 times e^x.", [](const GradientScope& g) -> Gradients {
    return {g.dy() * (g.y() - Of("BesselK1e", g))};
  });
}

OP(BesselK1e) {
  return BesselOp("BesselK1 times e^x.", [](const GradientScope& g) -> Gradients {
    return {g.dy() * (g.y() - g.y() / g.x() - Of("BesselK0e", g))};
  });
}

OP(BesselJ0) {
  return BesselOp(
      "The Bessel function of the first kind of order zero.",
      [](const GradientScope& g) -> Gradients { return {-g.dy() * Of("BesselJ1", g)}; });
}

OP(BesselJ1) {
  return BesselOp("The Bessel function of the first kind of order one.",
                  [](const GradientScope& g) -> Gradients {
                    return {g.dy() * HalfAtZero(g, Of("BesselJ0", g) - g.y() / g.x())};
                  });
}

OP(BesselY0) {
  return BesselOp(
      "The Bessel function of the second kind of order zero.",
      [](const GradientScope& g) -> Gradients { return {-g.dy() * Of("BesselY1", g)}; });
}

OP(BesselY1) {
  return BesselOp("The Bessel function of the second kind of order one.",
                  [](const GradientScope& g) -> Gradients {
                    return {g.dy() * (Of("BesselY0", g) - g.y() / g.x())};
                  });
}

BESSEL_FN(I0, i0);
BESSEL_FN(I1, i1);
BESSEL_FN(I0e, i0e);
BESSEL_FN(I1e, i1e);
BESSEL_FN(K0, k0);
BESSEL_FN(K1, k1);
BESSEL_FN(K0e, k0e);
BESSEL_FN(K1e, k1e);
BESSEL_FN(J0, j0);
BESSEL_FN(J1, j1);
BESSEL_FN(Y0, y0);
BESSEL_FN(Y1, y1);

}  // namespace penstock
