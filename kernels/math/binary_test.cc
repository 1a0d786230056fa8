// SPDX-License-Identifier: Apache-2.0
//
// Tests elementwise ops of two operands: values, broadcasting, integer corner cases, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "core/op/testing/op_runner.h"
#include "kernels/math/testing/test_tensors.h"

namespace penstock {
namespace {

using C = std::complex<double>;

template <class T>
Tensor Apply(const char* op, const std::vector<T>& x, const std::vector<T>& y) {
  const auto z = OpRunner(op).In(Tensor::Vector<T>(x)).In(Tensor::Vector<T>(y)).Run1();
  CHECK_OK(z.status());
  return *z;
}

struct Case {
  const char* op;
  double (*exact)(double, double);
};

double FloorMod(double x, double y) { return x - std::floor(x / y) * y; }

const Case kFloatingCases[] = {
    {"Add", [](double x, double y) { return x + y; }},
    {"AddV2", [](double x, double y) { return x + y; }},
    {"Sub", [](double x, double y) { return x - y; }},
    {"Mul", [](double x, double y) { return x * y; }},
    {"MulNoNan", [](double x, double y) { return x * y; }},
    {"Div", [](double x, double y) { return x / y; }},
    {"RealDiv", [](double x, double y) { return x / y; }},
    {"DivNoNan", [](double x, double y) { return x / y; }},
    {"FloorDiv", [](double x, double y) { return std::floor(x / y); }},
    {"TruncateDiv", [](double x, double y) { return std::trunc(x / y); }},
    {"FloorMod", FloorMod},
    {"Mod", [](double x, double y) { return std::fmod(x, y); }},
    {"TruncateMod", [](double x, double y) { return std::fmod(x, y); }},
    {"SquaredDifference", [](double x, double y) { return (x - y) * (x - y); }},
    {"Maximum", [](double x, double y) { return std::fmax(x, y); }},
    {"Minimum", [](double x, double y) { return std::fmin(x, y); }},
    {"Pow", [](double x, double y) { return std::pow(x, y); }},
    {"Atan2", [](double x, double y) { return std::atan2(x, y); }},
    {"Xlogy", [](double x, double y) { return x * std::log(y); }},
    {"Xlog1py", [](double x, double y) { return x * std::log1p(y); }},
    {"Xdivy", [](double x, double y) { return x / y; }},
    {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }},
    {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }},
    {"SqrtGrad", [](double y, double dy) { return dy / (2 * y); }},
    {"RsqrtGrad", [](double y, double dy) { return dy * -0.5 * y * y * y; }},
    {"ReciprocalGrad", [](double y, double dy) { return -dy * y * y; }},
    {"InvGrad", [](double y, double dy) { return -dy * y * y; }},
};

// Returns a tensor of small multiples of 1/4. They are exact in every type, so that only the op
// itself rounds.
template <class T>
Tensor Quarters(const Shape& shape, int step, int modulus, int first) {
  Tensor t(kDTypeOf<T>, shape);
  int i = 0;
  for (T& v : t.mutable_flat<T>()) v = T(0.25 * (first + i++ * step % modulus));
  return t;
}

// Returns the index of the operand's element for output element `index`; shapes are those of
// kShapes.
int64_t Source(const Shape& shape, const Shape& output, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int i = 1; i <= output.rank(); ++i) {
    const int64_t at = index % output.dim(output.rank() - i);
    index /= output.dim(output.rank() - i);
    if (i > shape.rank()) continue;
    const int64_t size = shape.dim(shape.rank() - i);
    if (size != 1) offset += at * stride;
    stride *= size;
  }
  return offset;
}

const std::pair<Shape, Shape> kShapes[] = {
    {{2, 3}, {2, 3}}, {{}, {5}},           {{5}, {}},        {{}, {}},
    {{4, 1}, {3}},    {{2, 3, 4}, {3, 1}}, {{0, 3}, {3}},    {{70, 70}, {70}},
    {{1, 1}, {7}},    {{70, 1}, {70, 70}}, {{9000}, {9000}}, {{1}, {9000}},
};

template <class T>
void RunFloatingCases(double unit) {
  for (const Case& c : kFloatingCases) {
    for (const auto& [a, b] : kShapes) {
      const Tensor x = Quarters<T>(a, 3, 11, 1), y = Quarters<T>(b, 5, 13, 2);
      const auto z = OpRunner(c.op).In(x).In(y).Run1();
      ASSERT_TRUE(z.ok()) << c.op << ": " << z.status();
      for (int64_t i = 0; i < z->num_elements(); ++i) {
        const double left = static_cast<double>(x.flat<T>()[Source(a, z->shape(), i)]);
        const double right = static_cast<double>(y.flat<T>()[Source(b, z->shape(), i)]);
        const double exact = c.exact(left, right);
        ASSERT_NEAR(static_cast<double>(z->flat<T>()[i]), exact,
                    unit * std::max(1.0, std::abs(exact)))
            << c.op << "(" << left << ", " << right << ") " << a.ToString() << b.ToString();
      }
    }
  }
}

TEST(Binary, Float) { RunFloatingCases<float>(5e-7); }
TEST(Binary, Double) { RunFloatingCases<double>(1e-15); }
TEST(Binary, Half) { RunFloatingCases<half>(1.0 / 1024); }
TEST(Binary, Bfloat16) { RunFloatingCases<bfloat16>(1.0 / 128); }

template <class T>
void RunIntegerCases() {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  using V = std::vector<T>;
  const auto expect = [](const char* op, V x, V y, V z) {
    EXPECT_TRUE(Same(Apply<T>(op, x, y), Tensor::Vector<T>(z))) << op;
  };
  expect("AddV2", {1, kMax}, {2, 1}, {3, kMin});
  expect("Sub", {5, kMin}, {2, 1}, {3, kMax});
  expect("Mul", {5, kMax}, {2, 2}, {10, T(-2)});
  expect("Div", {7, 9}, {2, 3}, {3, 3});
  expect("Pow", {2, 3, 0, 7}, {5, 4, 0, 1}, {32, 81, 1, 7});
  expect("Maximum", {1, kMin}, {kMin, kMax}, {1 > kMin ? T(1) : kMin, kMax});
  expect("Minimum", {1, kMax}, {2, kMin}, {1, kMin});
  expect("SquaredDifference", {5, 2}, {2, 5}, {9, 9});
  expect("BitwiseAnd", {12, kMax}, {10, 1}, {8, 1});
  expect("BitwiseOr", {12, 0}, {10, 1}, {14, 1});
  expect("BitwiseXor", {12, 1}, {10, 1}, {6, 0});
  expect("LeftShift", {1, 1}, {3, 0}, {8, 1});
  expect("RightShift", {8, kMax}, {3, 100}, {1, std::is_signed_v<T> ? T(0) : T(1)});
  if constexpr (std::is_signed_v<T>) {
    const T m = -1;
    expect("Div", {7, -7, 7, -7, kMin}, {2, 2, -2, -2, m}, {3, -3, -3, 3, kMin});
    expect("TruncateDiv", {7, -7, 7, -7, kMin}, {2, 2, -2, -2, m}, {3, -3, -3, 3, kMin});
    expect("FloorDiv", {7, -7, 7, -7, kMin, -6}, {2, 2, -2, -2, m, 3}, {3, -4, -4, 3, kMin, -2});
    expect("FloorMod", {7, -7, 7, -7, kMin, -6}, {3, 3, -3, -3, m, 3}, {1, 2, -2, -1, 0, 0});
    expect("Mod", {7, -7, 7, -7, kMin}, {3, 3, -3, -3, m}, {1, m, 1, m, 0});
    expect("TruncateMod", {7, -7, 7, -7, kMin}, {3, 3, -3, -3, m}, {1, m, 1, m, 0});
    expect("LeftShift", {1, m}, {-3, 1}, {1, -2});
    expect("RightShift", {kMin, -8}, {100, 1}, {m, -4});
  }
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod"}) {
    const auto z = OpRunner(op).In(Tensor::Vector<T>({1, 2})).In(Tensor::Vector<T>({1, 0})).Run1();
    EXPECT_EQ(z.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(z.status().message(), "Integer division by zero") << op;
    // Without elements nothing is divided, so a divisor of zero is no error.
    EXPECT_TRUE(OpRunner(op).In(Tensor::Vector<T>({})).In(Tensor::Vector<T>({0})).Run1().ok());
  }
}

TEST(Binary, Integers) {
  RunIntegerCases<int8_t>();
  RunIntegerCases<int16_t>();
  RunIntegerCases<int32_t>();
  RunIntegerCases<int64_t>();
  RunIntegerCases<uint8_t>();
  RunIntegerCases<uint16_t>();
  RunIntegerCases<uint32_t>();
  RunIntegerCases<uint64_t>();
}

TEST(Binary, NegativeIntegerExponent) {
  const auto z =
      OpRunner("Pow").In(Tensor::Scalar<int32_t>(2)).In(Tensor::Scalar<int32_t>(-1)).Run1();
  EXPECT_EQ(z.status().code(), StatusCode::kInvalidArgument) << z.status();
}

TEST(Binary, Complex) {
  const std::vector<C> x = {{1, 2}, {-3, 0.5}, {0, 0}}, y = {{2, -1}, {0.25, 4}, {0, 0}};
  const auto expect = [&](const char* op, C (*exact)(C, C)) {
    const Tensor z = Apply<C>(op, x, y);
    for (int i = 0; i < 2; ++i) {
      EXPECT_LE(std::abs(z.flat<C>()[i] - exact(x[i], y[i])), 1e-14) << op;
    }
    return z;
  };
  expect("AddV2", [](C a, C b) { return a + b; });
  expect("Sub", [](C a, C b) { return a - b; });
  expect("Mul", [](C a, C b) { return a * b; });
  expect("Div", [](C a, C b) { return a / b; });
  expect("RealDiv", [](C a, C b) { return a / b; });
  expect("Pow", [](C a, C b) { return std::pow(a, b); });
  expect("Xlogy", [](C a, C b) { return a * std::log(b); });
  expect("SquaredDifference", [](C a, C b) { return C(std::norm(a - b)); });
  expect("SqrtGrad", [](C a, C b) { return 0.5 * b / std::conj(a); });
  EXPECT_EQ(expect("DivNoNan", [](C a, C b) { return a / b; }).flat<C>()[2], C(0));
  const auto made = OpRunner("Complex")
                        .In(Tensor::Vector<double>({1, 2}))
                        .In(Tensor::Scalar<double>(7))
                        .Attr("Tout", DType::kComplex128)
                        .Run1();
  EXPECT_TRUE(Same(*made, Tensor::Vector<C>({{1, 7}, {2, 7}})));
}

TEST(Binary, NotANumber) {
  const float nan = NAN, inf = INFINITY;
  const auto is_nan = [](const Tensor& z) {
    std::vector<bool> found;
    for (float v : z.flat<float>()) found.push_back(std::isnan(v));
    return found;
  };
  const std::vector<float> x = {nan, 1, nan, 1}, y = {1, nan, nan, 2};
  EXPECT_EQ(is_nan(Apply<float>("Maximum", x, y)), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(is_nan(Apply<float>("Minimum", x, y)), (std::vector<bool>{true, true, true, false}));
  for (const char* op : {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal"}) {
    EXPECT_TRUE(Same(Apply<float>(op, {nan, 1, nan}, {1, nan, nan}),
                     Tensor::Vector<bool>({false, false, false})))
        << op;
  }
  EXPECT_TRUE(
      Same(Apply<float>("NotEqual", {nan, 1}, {nan, 1}), Tensor::Vector<bool>({true, false})));
  const std::vector<float> zeros = {0, 0, 0};
  const Tensor zero = Tensor::Vector<float>(zeros);
  EXPECT_TRUE(Same(Apply<float>("MulNoNan", {nan, inf, 3}, zeros), zero));
  EXPECT_TRUE(Same(Apply<float>("DivNoNan", {nan, inf, 3}, zeros), zero));
  EXPECT_TRUE(Same(Apply<float>("Xlogy", zeros, {nan, 0, -1}), zero));
  EXPECT_TRUE(Same(Apply<float>("Xlog1py", zeros, {nan, -1, -3}), zero));
  EXPECT_TRUE(Same(Apply<float>("Xdivy", zeros, {nan, 0, inf}), zero));
  EXPECT_TRUE(Same(Apply<float>("SqrtGrad", {0, inf, nan}, zeros), zero));
  EXPECT_TRUE(Same(Apply<float>("RsqrtGrad", {0, inf, nan}, zeros), zero));
}

TEST(Binary, Comparisons) {
  const auto expect = [](const char* op, std::vector<bool> z) {
    EXPECT_TRUE(Same(Apply<int32_t>(op, {1, 2, 3}, {2, 2, 2}), Tensor::Vector<bool>(z))) << op;
    EXPECT_TRUE(Same(Apply<half>(op, {half(1), half(2), half(3)}, {half(2), half(2), half(2)}),
                     Tensor::Vector<bool>(z)))
        << op;
  };
  expect("Less", {true, false, false});
  expect("LessEqual", {true, true, false});
  expect("Greater", {false, false, true});
  expect("GreaterEqual", {false, true, true});
  expect("Equal", {false, true, false});
  expect("NotEqual", {true, false, true});
  EXPECT_TRUE(
      Same(Apply<bool>("Equal", {true, false}, {true, true}), Tensor::Vector<bool>({true, false})));
  EXPECT_TRUE(Same(Apply<bool>("LogicalAnd", {true, false}, {true, true}),
                   Tensor::Vector<bool>({true, false})));
  EXPECT_TRUE(Same(Apply<bool>("LogicalOr", {true, false}, {true, false}),
                   Tensor::Vector<bool>({true, false})));
}

TEST(Binary, Strings) {
  using S = std::string;
  EXPECT_TRUE(Same(Apply<S>("Add", {"a", "b"}, {"c"}), Tensor::Vector<S>({"ac", "bc"})));
  EXPECT_TRUE(Same(Apply<S>("Equal", {"a", "b"}, {"b"}), Tensor::Vector<bool>({false, true})));
  EXPECT_TRUE(Same(Apply<S>("NotEqual", {"a", "b"}, {"b"}), Tensor::Vector<bool>({true, false})));
}

TEST(Binary, EqualityOfIncompatibleShapes) {
  const Tensor x = Tensor::Vector<float>({1, 2}), y = Tensor::Vector<float>({1, 2, 3});
  EXPECT_FALSE(OpRunner("Equal").In(x).In(y).Run1().ok());
  const auto lenient = [&](const char* op) {
    return *OpRunner(op).In(x).In(y).Attr("incompatible_shape_error", false).Run1();
  };
  EXPECT_TRUE(Same(lenient("Equal"), Tensor::Scalar(false)));
  EXPECT_TRUE(Same(lenient("NotEqual"), Tensor::Scalar(true)));
}

TEST(Binary, ApproximateEqual) {
  const auto near = OpRunner("ApproximateEqual")
                        .In(Tensor::Vector<float>({1, 1, NAN}))
                        .In(Tensor::Vector<float>({1.05f, 1.2f, NAN}))
                        .Attr("tolerance", 0.1f)
                        .Run1();
  EXPECT_TRUE(Same(*near, Tensor::Vector<bool>({true, false, false})));
  EXPECT_TRUE(Same(*OpRunner("ApproximateEqual")
                        .In(Tensor::Vector<uint8_t>({0, 3}))
                        .In(Tensor::Vector<uint8_t>({255, 3}))
                        .Run1(),
                   Tensor::Vector<bool>({false, true})));
  EXPECT_FALSE(OpRunner("ApproximateEqual")
                   .In(Tensor::Vector<float>({1}))
                   .In(Tensor::Vector<float>({1, 2}))
                   .Run1()
                   .ok());
}

TEST(Binary, IncompatibleShapes) {
  const auto z =
      OpRunner("Add").In(Tensor::Vector<float>({1, 2})).In(Tensor::Vector<float>({1, 2, 3})).Run1();
  EXPECT_EQ(z.status().code(), StatusCode::kInvalidArgument) << z.status();
}

// Expects Xlogy and Xlog1py to round the logarithm to T before the product, as TensorFlow does, and
// as two separate ops do.
template <class T>
void ExpectLogarithmsRounded() {
  std::vector<T> x, y;
  for (int i = 1; i < 200; ++i) {
    x.push_back(T(0.37f * i));
    y.push_back(T(0.11f * i));
  }
  const Tensor product = Apply<T>("Xlogy", x, y), product1p = Apply<T>("Xlog1py", x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const float left = static_cast<float>(x[i]), right = static_cast<float>(y[i]);
    EXPECT_EQ(product.flat<T>()[i], T(left * static_cast<float>(T(std::log(right))))) << i;
    EXPECT_EQ(product1p.flat<T>()[i], T(left * static_cast<float>(T(std::log1p(right))))) << i;
  }
}

TEST(Binary, LogarithmsOfSixteenBitsAreRounded) {
  ExpectLogarithmsRounded<half>();
  ExpectLogarithmsRounded<bfloat16>();
}

}  // namespace
}  // namespace penstock
