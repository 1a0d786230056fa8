// SPDX-License-Identifier: Apache-2.0
//
// Compares the vector versions of math functions with long double: within a few units in the last
// place, and correct in the special cases.
#include "kernels/engine/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

constexpr int kCount = 1 << 14;

template <class T, class F>
void Map(const T* x, T* y, int64_t n, F f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, class Vector, class Exact>
void Compare(const char* name, double low, double high, Vector vector, Exact exact) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<T> x(kCount), y(kCount);
  for (T& v : x) v = static_cast<T>(uniform(random));
  const T kSpecial[] = {T(NAN),   T(INFINITY), -T(INFINITY), T(0),   T(-0.0), T(1e-42), T(1e30),
                        T(-1e30), T(1),        T(-1),        T(0.5), T(100),  T(-100),  T(1e-8)};
  std::copy(std::begin(kSpecial), std::end(kSpecial), x.begin() + 3);
  Map(x.data(), y.data(), kCount, vector);
  for (int i = 0; i < kCount; ++i) {
    const T wanted = static_cast<T>(exact(static_cast<long double>(x[i])));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(y[i])) << name << "(" << x[i] << ") = " << y[i];
    } else if (std::isinf(wanted) || wanted == 0) {
      EXPECT_EQ(y[i], wanted) << name << "(" << x[i] << ")";
    } else {
      const T ulp = std::nextafter(std::abs(wanted), T(INFINITY)) - std::abs(wanted);
      EXPECT_LE(std::abs(y[i] - wanted), 5 * ulp) << name << "(" << x[i] << ") = " << y[i];
    }
  }
}

#define COMPARE(f, low, high)                                                                     \
  Compare<float>(                                                                                 \
      #f, low, high, [](float x) { return std::f(x); }, [](long double x) { return std::f(x); }); \
  Compare<double>(                                                                                \
      #f, low, high, [](double x) { return std::f(x); }, [](long double x) { return std::f(x); });

TEST(VectorMath, IsExactToAFewUlp) {
  COMPARE(exp, -20, 20)
  COMPARE(expm1, -2, 2)
  COMPARE(log, 1e-3, 100)
  COMPARE(log1p, -0.9, 5)
  COMPARE(sin, -100, 100)
  COMPARE(cos, -100, 100)
  COMPARE(tan, -1, 1)
  COMPARE(asin, -1, 1)
  COMPARE(acos, -1, 1)
  COMPARE(atan, -5, 5)
  COMPARE(sinh, -5, 5)
  COMPARE(cosh, -5, 5)
  COMPARE(tanh, -5, 5)
  COMPARE(asinh, -5, 5)
  COMPARE(acosh, 1, 50)
  COMPARE(atanh, -0.99, 0.99)
  COMPARE(erf, -3, 3)
  COMPARE(erfc, -3, 3)
}

}  // namespace
