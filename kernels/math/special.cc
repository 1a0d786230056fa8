// SPDX-License-Identifier: Apache-2.0
//
// Erf, Erfc; and Lgamma, Digamma, Polygamma, Zeta.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct ErfFn {
  static constexpr double kNanos = 0.8;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return std::erf(x);
  }
};

struct ErfcFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return std::erfc(x);
  }
};

struct LgammaFn {
  static constexpr double kNanos = 20;
  template <class T>
  DEVICE_FN T operator()(T x) const {
#if defined(PENSTOCK_CUDA_DEVICE)
    return std::lgamma(x);
#else
    // Uses lgamma_r, because std::lgamma writes the sign to a global variable.
    int sign;
    if constexpr (std::is_same_v<T, float>) {
      return ::lgammaf_r(x, &sign);
    } else {
      return ::lgamma_r(x, &sign);
    }
#endif
  }
};

struct DigammaFn {
  static constexpr double kNanos = 20;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    constexpr T kPi = T(3.14159265358979323846);
    if (x <= 0) {
      if (x == std::floor(x)) return T(NAN);  // a pole
      // The reflection formula. tan(pi x) has period one in x, so x is reduced to its fractional
      // part, which is exact.
      const T part = x - std::floor(x);
      return (*this)(1 - x) - kPi / std::tan(kPi * part);
    }
    // The recurrence adds integers to x until the asymptotic series is accurate enough.
    T shift = 0;
    for (; x < 10; x += 1) shift += 1 / x;
    const T z = 1 / (x * x);
    const T series =
        z * (T(1.0 / 12) -
             z * (T(1.0 / 120) -
                  z * (T(1.0 / 252) -
                       z * (T(1.0 / 240) -
                            z * (T(1.0 / 132) - z * (T(691.0 / 32760) - z * T(1.0 / 12)))))));
    return std::log(x) - T(0.5) / x - series - shift;
  }
};

// The Hurwitz zeta function, the sum of (q + k)^-x over k >= 0, by the Euler-Maclaurin formula.
struct ZetaFn {
  static constexpr double kNanos = 200;
  template <class T>
  DEVICE_FN T operator()(T x, T q) const {
    if (x == 1) return T(INFINITY);
    if (x < 1) return T(NAN);
    if (q <= 0) {
      // A pole. For even x the function goes to infinity on both sides; for odd x the limits differ
      // in sign, so the result is NaN.
      if (q == std::floor(q)) return std::fmod(x, T(2)) == 0 ? T(INFINITY) : T(NAN);
      if (x != std::floor(x)) return T(NAN);  // a fractional power of a negative number
    }
    T sum = 0;
    for (int k = 0; k < 9 || q <= 9; ++k, q += 1) sum += std::pow(q, -x);
    T power = std::pow(q, -x);
    sum += power * q / (x - 1) + power / 2;
    // B(2k) / (2k)! for k = 1..10
    const double kCoefficients[] = {1.0 / 12,
                                    -1.0 / 720,
                                    1.0 / 30240,
                                    -1.0 / 1209600,
                                    1.0 / 47900160,
                                    -691.0 / 1307674368000.0,
                                    1.0 / 74724249600.0,
                                    -3617.0 / 10670622842880000.0,
                                    43867.0 / 5109094217170944000.0,
                                    -174611.0 / 802857662698291200000.0};
    T rising = x;
    for (int k = 0; k < 10; ++k) {
      power /= q;
      const T term = T(kCoefficients[k]) * rising * power;
      sum += term;
      if (std::abs(term) < std::abs(sum) * T(1e-17)) break;
      rising *= (x + 2 * k + 1) * (x + 2 * k + 2);
      power /= q;
    }
    return sum;
  }
};

// The n-th derivative of Digamma.
struct PolygammaFn {
  static constexpr double kNanos = 250;
  template <class T>
  DEVICE_FN T operator()(T n, T x) const {
    if (n == 0) return DigammaFn()(x);
    if (n < 0 || n != std::floor(n)) return T(NAN);
    const T magnitude = std::exp(LgammaFn()(n + 1)) * ZetaFn()(n + 1, x);
    return std::fmod(n, T(2)) == 1 ? magnitude : -magnitude;
  }
};

constexpr double kTwoOverRootPi = 1.12837916709551257390;

}  // namespace

OP(Erf) {
  return UnaryOp("The error function of x.", kFloating, [](const GradientScope& g) -> Gradients {
    return {g.dy() * (kTwoOverRootPi * Exp(-Square(g.x())))};
  });
}
KERNEL(Erf, UnaryElementwise<ErfFn>::Kernel, FLOATING_TYPES);

OP(Erfc) {
  return UnaryOp("One minus the error function of x.", kFloating,
                 [](const GradientScope& g) -> Gradients {
                   return {g.dy() * (-kTwoOverRootPi * Exp(-Square(g.x())))};
                 });
}
KERNEL(Erfc, UnaryElementwise<ErfcFn>::Kernel, FLOATING_TYPES);

OP(Lgamma) {
  return UnaryOp(
      "The logarithm of the absolute value of Gamma(x).", kFloating,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Call("Digamma", {g.x()})}; });
}
KERNEL(Lgamma, UnaryElementwise<LgammaFn>::Kernel, FLOATING_TYPES);

OP(Digamma) {
  return UnaryOp("The derivative of Lgamma.", kFloating, [](const GradientScope& g) -> Gradients {
    return {g.dy() * Call("Polygamma", {OnesLike(g.x()), g.x()})};
  });
}
KERNEL(Digamma, UnaryElementwise<DigammaFn>::Kernel, FLOATING_TYPES);

OP(Polygamma) {
  return {
      .doc =
          "The a-th derivative of Digamma at x, for integers a >= 0. It has no gradient for "
          "a.",
      .inputs = {{"a", "T"}, {"x", "T"}},
      .outputs = {{"z", "T"}},
      .types = {{"T", kFloating}},
      .shape = BroadcastShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        const Output dx = g.dy() * Call("Polygamma", {g.x(0) + 1.0, g.x(1)});
        return {Gradient(), SumToShapeOf(dx, g.x(1))};
      },
      .examples = {{.inputs = {{{{3}, {0, 1, 2}}}, {{{3}}}}, .check_gradient = false}},
      .reuses = Reuse::kAny,
  };
}
KERNEL(Polygamma, BinaryElementwise<PolygammaFn>::Kernel, FLOATING_TYPES);

OP(Zeta) {
  return {
      .doc =
          "The Hurwitz zeta function: the sum of (q + k)^-x over k >= 0. It has no gradient "
          "for x.",
      .inputs = {{"x", "T"}, {"q", "T"}},
      .outputs = {{"z", "T"}},
      .types = {{"T", kFloating}},
      .shape = BroadcastShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        const Output dq = g.dy() * -g.x(0) * Call("Zeta", {g.x(0) + 1.0, g.x(1)});
        return {Gradient(), SumToShapeOf(dq, g.x(1))};
      },
      .examples = {{.inputs = {{{{3}, {1.5, 2, 3}}}, {{{3}}}}, .check_gradient = false}},
      .reuses = Reuse::kAny,
  };
}
KERNEL(Zeta, BinaryElementwise<ZetaFn>::Kernel, FLOATING_TYPES);

}  // namespace penstock
