// SPDX-License-Identifier: Apache-2.0
//
// Compares every elementwise op of one operand with the function of the standard library, or a
// formula.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

using C = std::complex<double>;

struct Case {
  const char* op;
  double (*exact)(double);
  double low, high;
};

const Case kFloatingCases[] = {
    {"Abs", std::fabs, -3, 3},
    {"Neg", [](double x) { return -x; }, -3, 3},
    {"Sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }, -3, 3},
    {"Square", [](double x) { return x * x; }, -3, 3},
    {"Sqrt", std::sqrt, 0, 9},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
    {"Reciprocal", [](double x) { return 1 / x; }, 0.1, 9},
    {"Inv", [](double x) { return 1 / x; }, -9, -0.1},
    {"Exp", std::exp, -5, 5},
    {"Expm1", std::expm1, -2, 2},
    {"Log", std::log, 0.1, 9},
    {"Log1p", std::log1p, -0.5, 9},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9},
    {"Sin", std::sin, -9, 9},
    {"Cos", std::cos, -9, 9},
    {"Tan", std::tan, -1, 1},
    {"Asin", std::asin, -1, 1},
    {"Acos", std::acos, -1, 1},
    {"Atan", std::atan, -9, 9},
    {"Sinh", std::sinh, -3, 3},
    {"Cosh", std::cosh, -3, 3},
    {"Tanh", std::tanh, -3, 3},
    {"Asinh", std::asinh, -9, 9},
    {"Acosh", std::acosh, 1, 9},
    {"Atanh", std::atanh, -0.9, 0.9},
    {"Erf", std::erf, -3, 3},
    {"Erfc", std::erfc, -2, 2},
    {"Lgamma", std::lgamma, 0.1, 9},
    {"Ceil", std::ceil, -9, 9},
    {"Floor", std::floor, -9, 9},
    {"Round", std::nearbyint, -9, 9},
    {"Rint", std::nearbyint, -9, 9},
};

// Returns values of type T between the bounds, in a shape of rank 2 with more than one block.
template <class T>
Tensor Uniform(double low, double high) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(low, high);
  Tensor x(kDTypeOf<T>, Shape{67, 131});
  for (T& v : x.mutable_flat<T>()) v = T(uniform(random));
  return x;
}

// Compares with a tolerance of `ulps` times the precision of T: relative for numbers above one,
// else absolute.
template <class T>
void ExpectClose(T actual, double exact, double ulps, const std::string& where) {
  const double unit = std::is_same_v<T, half>       ? 1.0 / 1024
                      : std::is_same_v<T, bfloat16> ? 1.0 / 128
                      : std::is_same_v<T, float>    ? 1.2e-7
                                                    : 2.3e-16;
  const double value = static_cast<double>(actual);
  if (std::isnan(exact) && std::isnan(value)) return;
  EXPECT_NEAR(value, exact, ulps * unit * std::max(1.0, std::abs(exact))) << where;
}

template <class T>
void RunFloatingCases() {
  for (const Case& c : kFloatingCases) {
    const Tensor x = Uniform<T>(c.low, c.high);
    const auto y = OpRunner(c.op).In(x).Run1();
    ASSERT_TRUE(y.ok()) << c.op << ": " << y.status();
    ASSERT_EQ(y->shape(), x.shape());
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double at = static_cast<double>(x.flat<T>()[i]);
      ExpectClose(y->flat<T>()[i], c.exact(at), 8, StrCat(c.op, "(", at, ")"));
      if (testing::Test::HasFailure()) break;
    }
    EXPECT_EQ(OpRunner(c.op).In(Tensor(kDTypeOf<T>, Shape{0, 3})).Run1()->shape(), (Shape{0, 3}));
    const T first = x.flat<T>()[0];
    const auto scalar = OpRunner(c.op).In(Tensor::Scalar(first)).Run1();
    ASSERT_TRUE(scalar.ok() && scalar->rank() == 0);
    ExpectClose(scalar->template scalar<T>(), c.exact(static_cast<double>(first)), 8, c.op);
  }
}

TEST(Unary, Float) { RunFloatingCases<float>(); }
TEST(Unary, Double) { RunFloatingCases<double>(); }
TEST(Unary, Half) { RunFloatingCases<half>(); }
TEST(Unary, Bfloat16) { RunFloatingCases<bfloat16>(); }

struct ComplexCase {
  const char* op;
  C (*exact)(C);
};

const ComplexCase kComplexCases[] = {
    {"Neg", [](C x) { return -x; }},
    {"Sign", [](C x) { return x / std::abs(x); }},
    {"Square", [](C x) { return x * x; }},
    {"Sqrt", [](C x) { return std::sqrt(x); }},
    {"Rsqrt", [](C x) { return 1.0 / std::sqrt(x); }},
    {"Reciprocal", [](C x) { return 1.0 / x; }},
    {"Exp", [](C x) { return std::exp(x); }},
    {"Expm1", [](C x) { return std::exp(x) - 1.0; }},
    {"Log", [](C x) { return std::log(x); }},
    {"Log1p", [](C x) { return std::log(1.0 + x); }},
    {"Sigmoid", [](C x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {"Sin", [](C x) { return std::sin(x); }},
    {"Cos", [](C x) { return std::cos(x); }},
    {"Tan", [](C x) { return std::tan(x); }},
    {"Asin", [](C x) { return std::asin(x); }},
    {"Acos", [](C x) { return std::acos(x); }},
    {"Atan", [](C x) { return std::atan(x); }},
    {"Sinh", [](C x) { return std::sinh(x); }},
    {"Cosh", [](C x) { return std::cosh(x); }},
    {"Tanh", [](C x) { return std::tanh(x); }},
    {"Asinh", [](C x) { return std::asinh(x); }},
    {"Acosh", [](C x) { return std::acosh(x); }},
    {"Atanh", [](C x) { return std::atanh(x); }},
    {"Conj", [](C x) { return std::conj(x); }},
};

template <class F>
void RunComplexCases(double tolerance) {
  using T = std::complex<F>;
  const Tensor re = Uniform<F>(-1.5, 1.5).Slice(0, 20), im = Uniform<F>(-1.5, 1.5).Slice(20, 40);
  Tensor x(kDTypeOf<T>, re.shape());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    x.mutable_flat<T>()[i] = T(re.flat<F>()[i], im.flat<F>()[i]);
  }
  for (const ComplexCase& c : kComplexCases) {
    const auto y = OpRunner(c.op).In(x).Run1();
    ASSERT_TRUE(y.ok()) << c.op << ": " << y.status();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const C at = C(x.flat<T>()[i]), exact = c.exact(at);
      ASSERT_LE(std::abs(C(y->flat<T>()[i]) - exact), tolerance * std::max(1.0, std::abs(exact)))
          << c.op << at;
    }
  }
}

TEST(Unary, Complex) {
  RunComplexCases<float>(3e-6);
  RunComplexCases<double>(1e-14);
}

TEST(Unary, ComplexFunctionsAreAccurateNearZero) {
  const C tiny(1e-12, 2e-12);
  const auto near = [&](const char* op) {
    return OpRunner(op).In(Tensor::Scalar(tiny)).Run1()->scalar<C>();
  };
  EXPECT_LE(std::abs(near("Expm1") - (tiny + tiny * tiny / 2.0)), 1e-27);
  EXPECT_LE(std::abs(near("Log1p") - (tiny - tiny * tiny / 2.0)), 1e-27);
}

TEST(Unary, PartsOfComplexNumbers) {
  const Tensor x = Tensor::Vector<C>({{3, 4}, {0, -2}});
  const auto part = [&](const char* op) {
    return *OpRunner(op).In(x).Attr("Tout", DType::kDouble).Run1();
  };
  EXPECT_TRUE(Same(part("Real"), Tensor::Vector<double>({3, 0})));
  EXPECT_TRUE(Same(part("Imag"), Tensor::Vector<double>({4, -2})));
  EXPECT_TRUE(Same(part("ComplexAbs"), Tensor::Vector<double>({5, 2})));
  EXPECT_NEAR(part("Angle").flat<double>()[1], -M_PI / 2, 1e-15);
  const auto mixed = OpRunner("Real").In(x).Attr("Tout", DType::kFloat).Run1();
  EXPECT_EQ(mixed.status().code(), StatusCode::kInvalidArgument) << mixed.status();
}

template <class T>
void RunIntegerCases() {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  const auto run = [](const char* op, std::vector<T> x) {
    return *OpRunner(op).In(Tensor::Vector<T>(x)).Run1();
  };
  EXPECT_TRUE(Same(run("Invert", {0, 1, kMax, kMin}),
                   Tensor::Vector<T>({T(~T(0)), T(~T(1)), T(~kMax), T(~kMin)})));
  EXPECT_TRUE(Same(run("Square", {0, 3, kMax}), Tensor::Vector<T>({0, 9, 1})));
  if (std::is_unsigned_v<T>) return;
  EXPECT_TRUE(
      Same(run("Abs", {0, 5, T(-5), kMin, kMax}), Tensor::Vector<T>({0, 5, 5, kMin, kMax})));
  EXPECT_TRUE(Same(run("Neg", {0, 5, T(-5), kMin}), Tensor::Vector<T>({0, T(-5), 5, kMin})));
  EXPECT_TRUE(Same(run("Sign", {0, 5, T(-5), kMin}), Tensor::Vector<T>({0, 1, T(-1), T(-1)})));
  EXPECT_TRUE(Same(run("Round", {kMin, 7, kMax}), Tensor::Vector<T>({kMin, 7, kMax})));
}

TEST(Unary, Integers) {
  RunIntegerCases<int8_t>();
  RunIntegerCases<int16_t>();
  RunIntegerCases<int32_t>();
  RunIntegerCases<int64_t>();
}

TEST(Unary, Specials) {
  const float inf = INFINITY;
  const Tensor x = Tensor::Vector<float>({NAN, inf, -inf, 0, 1, -0.0f});
  const auto run = [&](const char* op) { return *OpRunner(op).In(x).Run1(); };
  EXPECT_TRUE(Same(run("IsNan"), Tensor::Vector<bool>({true, false, false, false, false, false})));
  EXPECT_TRUE(Same(run("IsInf"), Tensor::Vector<bool>({false, true, true, false, false, false})));
  EXPECT_TRUE(Same(run("IsFinite"), Tensor::Vector<bool>({false, false, false, true, true, true})));
  EXPECT_TRUE(std::isnan(run("Sign").flat<float>()[0]));
  EXPECT_TRUE(Same(*OpRunner("Round").In(Tensor::Vector<float>({0.5f, 1.5f, 2.5f, -0.5f})).Run1(),
                   Tensor::Vector<float>({0, 2, 2, -0.0f})));
  EXPECT_TRUE(Same(*OpRunner("LogicalNot").In(Tensor::Vector<bool>({true, false})).Run1(),
                   Tensor::Vector<bool>({false, true})));
}

TEST(Unary, GammaFamily) {
  constexpr double kEuler = 0.57721566490153286061;
  const auto digamma = [](double x) {
    return OpRunner("Digamma").In(Tensor::Scalar(x)).Run1()->scalar<double>();
  };
  EXPECT_NEAR(digamma(1), -kEuler, 1e-14);
  EXPECT_NEAR(digamma(0.5), -kEuler - 2 * M_LN2, 1e-14);
  EXPECT_NEAR(digamma(-0.5), 0.03648997397857652, 1e-14);
  EXPECT_NEAR(digamma(50), 3.9019896734278921, 1e-14);
  EXPECT_TRUE(std::isnan(digamma(-3)));
  const auto binary = [](const char* op, double x, double y) {
    return OpRunner(op).In(Tensor::Scalar(x)).In(Tensor::Scalar(y)).Run1()->scalar<double>();
  };
  EXPECT_NEAR(binary("Zeta", 2, 1), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(binary("Zeta", 4, 1), std::pow(M_PI, 4) / 90, 1e-14);
  EXPECT_NEAR(binary("Zeta", 2, 0.5), M_PI * M_PI / 2, 1e-13);
  EXPECT_NEAR(binary("Polygamma", 0, 1), -kEuler, 1e-14);
  EXPECT_NEAR(binary("Polygamma", 1, 1), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(binary("Polygamma", 2, 1), -2 * 1.2020569031595942, 1e-13);
  EXPECT_TRUE(std::isnan(binary("Polygamma", 1.5, 1)));
  EXPECT_EQ(binary("Zeta", 2, -1), INFINITY);
  EXPECT_TRUE(std::isnan(binary("Zeta", 3, -1)));
  EXPECT_TRUE(std::isnan(binary("Polygamma", 2, 0)));
}

}  // namespace
}  // namespace penstock
