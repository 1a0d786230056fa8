// SPDX-License-Identifier: Apache-2.0
//
// Tests the distributions of the random ops' numbers. A correct op violates a bound with a
// probability below 1e-6 (and, because the seeds are fixed, always or never).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "kernels/random/testing/draw.h"

namespace penstock {
namespace {

std::vector<double> Sorted(const Tensor& t) {
  std::vector<double> values(t.num_elements());
  for (size_t i = 0; i < values.size(); ++i) {
    switch (t.dtype()) {
      case DType::kHalf:
        values[i] = t.data<half>()[i];
        break;
      case DType::kBfloat16:
        values[i] = t.data<bfloat16>()[i];
        break;
      case DType::kFloat:
        values[i] = t.data<float>()[i];
        break;
      default:
        values[i] = t.data<double>()[i];
        break;
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

// The Kolmogorov-Smirnov test: the largest distance between the empirical and the exact
// distribution must be below 2.6 / sqrt(n) (two-sided p = 2e-6) plus `grain`. `grain` bounds the
// probability of a single value in a type with few bits.
void ExpectDistribution(const Tensor& t, const std::function<double(double)>& cdf, double grain) {
  const std::vector<double> values = Sorted(t);
  const double n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double exact = cdf(values[i]);
    distance = std::max({distance, std::abs(exact - i / n), std::abs((i + 1) / n - exact)});
  }
  EXPECT_LT(distance, 2.6 / std::sqrt(n) + grain) << Name(t.dtype());
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

const std::pair<DType, double> kTypes[] = {
    {DType::kFloat, 0}, {DType::kDouble, 0}, {DType::kHalf, 1e-3}, {DType::kBfloat16, 8e-3}};

TEST(Distributions, Uniform) {
  for (const auto& [dtype, grain] : kTypes) {
    const Tensor x = Draw("RandomUniform", dtype, {100, 1000});
    ExpectDistribution(
        x, [](double v) { return v; }, grain);
    const auto values = Sorted(x);
    EXPECT_GE(values.front(), 0);
    EXPECT_LT(values.back(), 1);
  }
}

TEST(Distributions, Normal) {
  for (const auto& [dtype, grain] : kTypes) {
    const Tensor x = Draw("RandomStandardNormal", dtype, {100, 1000});
    ExpectDistribution(x, NormalCdf, grain);
    double moments[5] = {};
    for (const double v : Sorted(x)) {
      for (int k = 1; k <= 4; ++k) moments[k] += std::pow(v, k) / 1e5;
    }
    // The bounds are five standard errors of the moments: 1, sqrt(2), sqrt(15), sqrt(96) over
    // sqrt(n).
    EXPECT_NEAR(moments[1], 0, 5 * 1 / std::sqrt(1e5));
    EXPECT_NEAR(moments[2], 1, 5 * 1.42 / std::sqrt(1e5));
    EXPECT_NEAR(moments[3], 0, 5 * 3.88 / std::sqrt(1e5));
    EXPECT_NEAR(moments[4], 3, 5 * 9.8 / std::sqrt(1e5));
  }
}

TEST(Distributions, TruncatedNormal) {
  const double tail = NormalCdf(-2);
  for (const auto& [dtype, grain] : kTypes) {
    const Tensor x = Draw("TruncatedNormal", dtype, {100, 1000});
    ExpectDistribution(
        x, [&](double v) { return (NormalCdf(v) - tail) / (1 - 2 * tail); }, grain);
    const auto values = Sorted(x);
    EXPECT_GE(values.front(), -2);
    EXPECT_LE(values.back(), 2);
  }
}

TEST(Distributions, NeighboursAreIndependent) {
  const Tensor x = Draw("RandomStandardNormal", DType::kDouble, {100000});
  for (const int lag : {1, 2, 3, 4, 256}) {
    double sum = 0;
    for (int i = 0; i + lag < 100000; ++i) sum += x.data<double>()[i] * x.data<double>()[i + lag];
    EXPECT_NEAR(sum / 1e5, 0, 5 / std::sqrt(1e5)) << lag;
  }
}

template <class T>
void CheckInts(T low, T high) {
  const Tensor x = OpCall{"RandomUniformInt",
                          {Longs({50, 1000}), Tensor::Scalar<T>(low), Tensor::Scalar<T>(high)},
                          Seeds(3, 4)}
                       .Run1();
  // As a double, `range` is exact if it is small, and nearly exact if it is large.
  const double range = static_cast<double>(static_cast<std::make_unsigned_t<T>>(high) -
                                           static_cast<std::make_unsigned_t<T>>(low));
  double sum = 0;
  std::map<T, int> counts;
  for (const T v : x.flat<T>()) {
    ASSERT_GE(v, low);
    ASSERT_LT(v, high);
    ++counts[v];
    sum += static_cast<double>(static_cast<std::make_unsigned_t<T>>(v) -
                               static_cast<std::make_unsigned_t<T>>(low)) /
           range;
  }
  EXPECT_NEAR(sum / 5e4, 0.5 - 0.5 / range, 5 * 0.29 / std::sqrt(5e4));
  if (range == 7) {
    for (const auto& [v, count] : counts) EXPECT_NEAR(count, 5e4 / 7, 5 * std::sqrt(5e4 / 7)) << v;
  }
}

TEST(Distributions, Integers) {
  CheckInts<int32_t>(-3, 4);
  CheckInts<int64_t>(-3, 4);
  CheckInts<int32_t>(INT32_MIN, INT32_MAX);
  CheckInts<int64_t>(-(int64_t{1} << 61), int64_t{1} << 61);
  CheckInts<int64_t>(INT64_MAX - 7, INT64_MAX);
  const auto call = [](int32_t low, int32_t high) {
    return OpCall{"RandomUniformInt",
                  {Ints({2}), Tensor::Scalar<int32_t>(low), Tensor::Scalar<int32_t>(high)}};
  };
  call(3, 3).ExpectError("Need minval < maxval, got 3 >= 3");
  OpCall{"RandomUniformInt", {Ints({2}), Ints({1}), Ints({2})}}.ExpectError(
      "minval must be 0-D, got shape [1]");
}

TEST(Multinomial, FollowsTheLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor logits =
      Tensor::Of<double>({3, 4}, {std::log(1.0), std::log(2.0), std::log(3.0), std::log(4.0), 1000,
                                  1000, -inf, 1000 - 1e9, 0, 0, 0, 0});
  const int n = 40000;
  const Tensor x = OpCall{"Multinomial", {logits, Tensor::Scalar<int32_t>(n)}, Seeds(1, 2)}.Run1();
  const double expected[3][4] = {{0.1, 0.2, 0.3, 0.4}, {0.5, 0.5, 0, 0}, {0.25, 0.25, 0.25, 0.25}};
  for (int row = 0; row < 3; ++row) {
    int counts[4] = {};
    for (int i = 0; i < n; ++i) {
      const int64_t drawn = x.data<int64_t>()[row * n + i];
      ASSERT_TRUE(drawn >= 0 && drawn < 4);
      ++counts[drawn];
    }
    for (int c = 0; c < 4; ++c) {
      const double p = expected[row][c];
      EXPECT_NEAR(counts[c], n * p, 5 * std::sqrt(n * p * (1 - p))) << row << " " << c;
    }
  }
}

TEST(Multinomial, OtherTypesAndMistakes) {
  for (const Tensor& logits :
       {Tensor::Of<float>({2, 3}, {0, -1e30f, -1e30f, -1e30f, 0, -1e30f}),
        Tensor::Of<half>({2, 3},
                         {half(0), half(-6e4f), half(-6e4f), half(-6e4f), half(0), half(-6e4f)}),
        Tensor::Of<int32_t>({2, 3}, {0, -1000000, -1000000, -1000000, 0, -1000000})}) {
    const Tensor x = OpCall{"Multinomial",
                            {logits, Tensor::Scalar<int32_t>(2)},
                            With(Seeds(1, 2), "output_dtype", DType::kInt32)}
                         .Run1();
    EXPECT_TRUE(SameTensor(x, Tensor::Of<int32_t>({2, 2}, {0, 0, 1, 1})));
  }
  const auto expect = [](const Tensor& logits, int samples, const char* words) {
    OpCall{"Multinomial", {logits, Tensor::Scalar<int32_t>(samples)}}.ExpectError(words);
  };
  expect(Sample(DType::kFloat, {3}), 1, "logits should be a matrix, got shape [3]");
  expect(Sample(DType::kFloat, {3, 0}), 1, "num_classes should be positive, got 0");
  expect(Tensor::Of<float>({1, 1}, {1}), -1, "num_samples should be nonnegative, got -1");
}

TEST(RandomGamma, HasTheMomentsOfItsAlpha) {
  const std::vector<double> alphas = {0.3, 1, 2.5, 20};
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const Tensor alpha = dtype == DType::kDouble ? Tensor::Vector<double>(alphas)
                                                 : Tensor::Vector<float>({0.3f, 1, 2.5f, 20});
    const int n = 40000;
    const Tensor x = OpCall{"RandomGamma", {Ints({n}), alpha}, Seeds(5, 6)}.Run1();
    ASSERT_EQ(x.shape(), Shape({n, 4}));
    for (int a = 0; a < 4; ++a) {
      double mean = 0, square = 0;
      for (int i = 0; i < n; ++i) {
        const double v =
            dtype == DType::kDouble ? x.data<double>()[i * 4 + a] : x.data<float>()[i * 4 + a];
        ASSERT_GE(v, 0);
        mean += v / n;
        square += v * v / n;
      }
      const double k = alphas[a];
      // The variance is k, the fourth central moment 3 k^2 + 6 k.
      EXPECT_NEAR(mean, k, 5 * std::sqrt(k / n)) << k;
      EXPECT_NEAR(square - mean * mean, k, 6 * std::sqrt((2 * k * k + 6 * k) / n)) << k;
    }
  }
}

TEST(RandomGamma, ExponentialAtOneAndMistakes) {
  const Tensor x =
      OpCall{"RandomGamma", {Ints({50000}), Tensor::Scalar<double>(1)}, Seeds(5, 6)}.Run1();
  ExpectDistribution(
      x, [](double v) { return -std::expm1(-v); }, 0);
  const auto expect = [](double alpha, const char* words) {
    OpCall{"RandomGamma", {Ints({2}), Tensor::Scalar<double>(alpha)}}.ExpectError(words);
  };
  expect(-1, "alpha must be positive, got -1");
  expect(std::nan(""), "alpha must be positive, got nan");
  EXPECT_EQ((OpCall{"RandomGamma", {Ints({0}), Tensor::Scalar<float>(1)}}.Run1().shape()),
            Shape({0}));
}

TEST(Stateless, IsAFunctionOfTheSeed) {
  for (const char* op :
       {"StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"}) {
    const auto draw = [&](int64_t a, int64_t b) {
      return OpCall{op, {Ints({1000}), Longs({a, b})}}.Run1();
    };
    EXPECT_TRUE(SameTensor(draw(1, 2), draw(1, 2)));
    EXPECT_FALSE(SameTensor(draw(1, 2), draw(2, 1)));
    EXPECT_FALSE(SameTensor(draw(1, 2), draw(1, 3)));
    EXPECT_FALSE(SameTensor(draw(0, 0), draw(int64_t{1} << 40, 0)));
    OpCall{op, {Ints({2}), Longs({1})}}.ExpectError("seed must have 2 elements");
  }
  ExpectDistribution(
      OpCall{"StatelessRandomUniform", {Ints({100000}), Ints({7, 8})}}.Run1(),
      [](double v) { return v; }, 0);
  ExpectDistribution(
      OpCall{"StatelessRandomNormal", {Ints({100000}), Ints({7, 8})}, {{"dtype", DType::kDouble}}}
          .Run1(),
      NormalCdf, 0);
}

}  // namespace
}  // namespace penstock
