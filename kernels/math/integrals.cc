// SPDX-License-Identifier: Apache-2.0
//
// Functions that are integrals, or inverses of integrals: Erfinv, Ndtri, Expint, Dawsn, FresnelSin,
// FresnelCos, Spence.
#include <cmath>
#include <complex>
#include <numbers>
#include <unsupported/Eigen/SpecialFunctions>

#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

using std::numbers::pi;

// Returns the quantile function of the normal distribution at p; NaN unless p is in [0, 1].
double Ndtri(double p) { return p >= 0 && p <= 1 ? Eigen::numext::ndtri(p) : NAN; }

// Returns the inverse of the error function. Computes it from the quantile function, and then makes
// a step of Newton's method, which restores the accuracy near zero.
double Erfinv(double x) {
  double y = Ndtri((x + 1) / 2) / std::numbers::sqrt2;
  const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
  if (std::isfinite(y) && slope > 1e-12) y -= (std::erf(y) - x) / slope;
  return y;
}

// Returns the principal value of the integral of e^t / t from -infinity to x. As in TensorFlow, NaN
// for x < 0.
double Expint(double x) {
  if (x == 0) return -INFINITY;
  return x > 0 ? std::expint(x) : NAN;
}

// Returns e^(-x^2) times the integral of e^(t^2) from 0 to x, as a sum of samples of a Gaussian (G.
// B. Rybicki: Dawson's Integral and the Sampling Theorem. Computers in Physics 3, 1989). With
// samples 0.2 apart, the error is far below double's precision.
double Dawson(double x) {
  constexpr double kStep = 0.2;
  constexpr int kSamples = 16;
  if (std::abs(x) < 1e-4) return x * (1 - 2.0 / 3 * x * x);
  if (!(std::abs(x) < 1e7)) return 0.5 / x;
  const double middle = 2 * std::round(0.5 * std::abs(x) / kStep);
  const double rest = std::abs(x) - middle * kStep;
  double sum = 0;
  for (int k = -kSamples; k < kSamples; ++k) {
    const double odd = 2 * k + 1, distance = rest - odd * kStep;
    sum += std::exp(-distance * distance) / (odd + middle);
  }
  return std::copysign(sum * std::numbers::inv_sqrtpi, x);
}

// Returns C(x) + i S(x), the integral of e^(i pi t^2 / 2) from 0 to x: near zero by its power
// series, else by the continued fraction of the complementary error function.
std::complex<double> Fresnel(double x) {
  using Complex = std::complex<double>;
  const double z = std::abs(x);
  if (std::isnan(x)) return {x, x};
  Complex result;
  if (z < 1.6) {
    Complex term = z, sum = z;
    const Complex factor(0, pi / 2 * z * z);
    for (int n = 1; std::abs(term) > 1e-17 * std::abs(sum); ++n) {
      term *= factor / static_cast<double>(n);
      sum += term / (2.0 * n + 1);
    }
    result = sum;
  } else if (z > 1e8) {
    result = {0.5, 0.5};
  } else {
    // Evaluates, from its end, w + (1/2) / (w + 1 / (w + (3/2) / (w + ...))).
    const Complex w = std::sqrt(pi) / 2 * Complex(1, -1) * z;
    Complex tail = w;
    for (int n = 200; n > 0; --n) tail = w + n / 2.0 / tail;
    // Full turns of the angle have no effect.
    const double angle = pi * std::fmod(z * z, 4.0) / 2;
    const Complex erfc = std::polar(1.0, angle) * std::numbers::inv_sqrtpi / tail;
    result = Complex(0.5, 0.5) * (1.0 - erfc);
  }
  return x < 0 ? -result : result;
}

// Returns the dilogarithm of 1 - x: minus the integral of log(t) / (t - 1) from 1 to x.
double Dilogarithm(double x) {
  if (!(x >= 0)) return NAN;
  if (x == 0) return pi * pi / 6;
  if (std::isinf(x)) return -INFINITY;
  if (x > 2) return -Dilogarithm(1 / x) - 0.5 * std::log(x) * std::log(x);
  if (x < 0.5) return pi * pi / 6 - std::log(x) * std::log1p(-x) - Dilogarithm(1 - x);
  // Uses a power series in u = -log(x) with Bernoulli numbers as coefficients; it converges for |u|
  // < 2 pi.
  constexpr double kTerms[] = {1.0 / 36,
                               -1.0 / 3600,
                               1.0 / 211680,
                               -1.0 / 10886400,
                               1.0 / 526901760,
                               -691.0 / 16999766784000.0,
                               1.0 / 1120863744000.0};
  const double u = -std::log(x);
  double power = u * u * u, sum = u - u * u / 4;
  for (const double term : kTerms) {
    sum += term * power;
    power *= u * u;
  }
  return sum;
}

double FresnelSine(double x) { return Fresnel(x).imag(); }
double FresnelCosine(double x) { return Fresnel(x).real(); }

template <double (*kFunction)(double)>
struct ComputedInDouble {
  static constexpr double kNanos = 100;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(kFunction(x));
  }
};

}  // namespace

OP(Erfinv) {
  return UnaryOp("y with erf(y) = x.", kFloating, [](const GradientScope& g) -> Gradients {
    return {g.dy() * (std::sqrt(pi) / 2 * Exp(Square(g.y())))};
  });
}

OP(Ndtri) {
  return UnaryOp("The quantile function of the standard normal distribution.", kFloating,
                 [](const GradientScope& g) -> Gradients {
                   return {g.dy() * (std::sqrt(2 * pi) * Exp(Square(g.y()) * 0.5))};
                 });
}

OP(Expint) {
  return UnaryOp(
      "The exponential integral Ei(x).", kFloating,
      [](const GradientScope& g) -> Gradients { return {g.dy() * (Exp(g.x()) / g.x())}; });
}

OP(Dawsn) {
  return UnaryOp(
      "Dawson's integral: e^(-x^2) times the integral of e^(t^2) from 0 to x.", kFloating,
      [](const GradientScope& g) -> Gradients { return {g.dy() * (1.0 - 2.0 * g.x() * g.y())}; });
}

OP(FresnelSin) {
  return UnaryOp(
      "The integral of sin(pi t^2 / 2) from 0 to x.", kFloating,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Sin(pi / 2 * Square(g.x()))}; });
}

OP(FresnelCos) {
  return UnaryOp(
      "The integral of cos(pi t^2 / 2) from 0 to x.", kFloating,
      [](const GradientScope& g) -> Gradients { return {g.dy() * Cos(pi / 2 * Square(g.x()))}; });
}

OP(Spence) {
  return UnaryOp("The dilogarithm of 1 - x.", kFloating, [](const GradientScope& g) -> Gradients {
    const Output one = OnesLike(g.x());
    const Output slope = Log(g.x()) / (1.0 - g.x());
    return {g.dy() * Call("SelectV2", {Equal(g.x(), one), -one, slope})};
  });
}

KERNEL(Erfinv, UnaryElementwise<ComputedInDouble<Erfinv>>::Kernel, FLOATING_TYPES);
KERNEL(Ndtri, UnaryElementwise<ComputedInDouble<Ndtri>>::Kernel, FLOATING_TYPES);
KERNEL(Expint, UnaryElementwise<ComputedInDouble<Expint>>::Kernel, FLOATING_TYPES);
KERNEL(Dawsn, UnaryElementwise<ComputedInDouble<Dawson>>::Kernel, FLOATING_TYPES);
KERNEL(FresnelSin, UnaryElementwise<ComputedInDouble<FresnelSine>>::Kernel, FLOATING_TYPES);
KERNEL(FresnelCos, UnaryElementwise<ComputedInDouble<FresnelCosine>>::Kernel, FLOATING_TYPES);
KERNEL(Spence, UnaryElementwise<ComputedInDouble<Dilogarithm>>::Kernel, FLOATING_TYPES);

}  // namespace penstock
