// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "core/op/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/random/distributions.h"
#include "kernels/random/philox.h"

namespace penstock {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// The known answers that the authors publish with their library (Random123, kat_vectors).
TEST(PhiloxTest, KnownAnswers) {
  Philox zero({0, 0}, {0, 0, 0, 0});
  EXPECT_THAT(zero.Next(), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const uint32_t f = 0xffffffffu;
  Philox ones({f, f}, {f, f, f, f});
  EXPECT_THAT(ones.Next(), ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  Philox pi({0xa4093822u, 0x299f31d0u}, {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u});
  EXPECT_THAT(pi.Next(), ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(PhiloxTest, SkippingIsDrawing) {
  Philox a(7, 9), b(7, 9);
  for (int i = 0; i < 1000; ++i) a.Next();
  b.Skip(1000);
  EXPECT_EQ(a.Next(), b.Next());
  Philox c({1, 2}, {0xffffffffu, 0xffffffffu, 0, 0}), d({1, 2}, {0, 0, 1, 0});
  c.Next();
  EXPECT_EQ(c.Next(), d.Next()) << "the carry reaches the upper half";
}

Tensor Sizes(std::vector<int32_t> sizes) { return Tensor::Vector<int32_t>(sizes); }

StatusOr<Tensor> Draw(const char* op, int64_t n, DType dtype, int64_t seed, int64_t seed2) {
  return OpRunner(op)
      .Attr("dtype", dtype)
      .Attr("seed", seed)
      .Attr("seed2", seed2)
      .In(Sizes({static_cast<int32_t>(n)}))
      .Run1();
}

struct Moments {
  double mean = 0, variance = 0, min = 1e300, max = -1e300;
};
Moments MomentsOf(absl::Span<const float> x) {
  Moments m;
  for (float v : x) {
    m.mean += v / x.size();
    m.min = std::min<double>(m.min, v);
    m.max = std::max<double>(m.max, v);
  }
  for (float v : x) m.variance += (v - m.mean) * (v - m.mean) / x.size();
  return m;
}

constexpr int64_t kMany = 1 << 20;

// The largest distance between the sample's distribution and `cdf` (Kolmogorov and Smirnov).
template <class Cdf>
double Distance(absl::Span<const float> x, const Cdf& cdf) {
  std::vector<float> sorted(x.begin(), x.end());
  std::sort(sorted.begin(), sorted.end());
  double distance = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double p = cdf(sorted[i]);
    distance = std::max({distance, std::abs(p - static_cast<double>(i) / sorted.size()),
                         std::abs(p - static_cast<double>(i + 1) / sorted.size())});
  }
  return distance;
}
// Exceeded once in ten thousand runs; the seeds are fixed, so it never is.
const double kDistanceMax = 2.2 / std::sqrt(static_cast<double>(kMany));

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(RandomTest, UniformFillsTheUnitInterval) {
  const Tensor x = *Draw("RandomUniform", kMany, DType::kFloat, 87654321, 5);
  EXPECT_LT(Distance(x.flat<float>(), [](double v) { return v; }), kDistanceMax);
  const Moments m = MomentsOf(x.flat<float>());
  EXPECT_GE(m.min, 0);
  EXPECT_LT(m.max, 1);
}

TEST(RandomTest, NormalAndTruncatedNormal) {
  const Tensor x = *Draw("RandomStandardNormal", kMany, DType::kFloat, 1, 2);
  EXPECT_LT(Distance(x.flat<float>(), NormalCdf), kDistanceMax);
  const Tensor t = *Draw("TruncatedNormal", kMany, DType::kFloat, 1, 2);
  const double inside = NormalCdf(2) - NormalCdf(-2);
  EXPECT_LT(
      Distance(t.flat<float>(), [&](double v) { return (NormalCdf(v) - NormalCdf(-2)) / inside; }),
      kDistanceMax);
  EXPECT_LT(MomentsOf(t.flat<float>()).max, 2);
}

TEST(RandomTest, SixteenBitAndDoubleNumbers) {
  for (DType dtype : {DType::kHalf, DType::kBfloat16, DType::kDouble}) {
    const Tensor x = *Draw("RandomUniform", 10001, dtype, 3, 4);
    double mean = 0;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double v = dtype == DType::kHalf       ? float(x.data<half>()[i])
                       : dtype == DType::kBfloat16 ? float(x.data<bfloat16>()[i])
                                                   : x.data<double>()[i];
      ASSERT_GE(v, 0);
      ASSERT_LT(v, 1);
      mean += v / static_cast<double>(x.num_elements());
    }
    EXPECT_NEAR(mean, 0.5, 0.02) << Name(dtype);
  }
}

TEST(RandomTest, SeedsRepeatAndPrefixesAgree) {
  const Tensor a = *Draw("RandomUniform", 1000, DType::kFloat, 11, 12);
  const Tensor b = *Draw("RandomUniform", 1000, DType::kFloat, 11, 12);
  const Tensor longer = *Draw("RandomUniform", 100003, DType::kFloat, 11, 12);
  const Tensor other = *Draw("RandomUniform", 1000, DType::kFloat, 11, 13);
  const Tensor free1 = *Draw("RandomUniform", 1000, DType::kFloat, 0, 0);
  const Tensor free2 = *Draw("RandomUniform", 1000, DType::kFloat, 0, 0);
  EXPECT_EQ(a.flat<float>(), b.flat<float>());
  EXPECT_EQ(a.flat<float>(), longer.flat<float>().subspan(0, 1000))
      << "the numbers must not depend on how the work is split";
  EXPECT_NE(a.flat<float>(), other.flat<float>());
  EXPECT_NE(free1.flat<float>(), free2.flat<float>());
}

// What TensorFlow 2.21 draws from the same seeds.
TEST(RandomTest, StreamsAreTensorFlows) {
  EXPECT_THAT(Draw("RandomUniform", 5, DType::kFloat, 87654321, 5)->flat<float>(),
              ElementsAre(0.3883112668991089f, 0.6636828184127808f, 0.1919107437133789f,
                          0.7060526609420776f, 0.9631834030151367f));
  EXPECT_THAT(Draw("RandomUniform", 3, DType::kDouble, 11, 12)->flat<double>(),
              ElementsAre(0.4038133921139535, 0.04926314668454834, 0.3676795896326812));
  EXPECT_THAT(
      Draw("RandomStandardNormal", 5, DType::kFloat, 11, 12)->flat<float>(),
      Pointwise(FloatNear(2e-6),
                std::vector<float>{0.2353770136833191f, 0.315420925617218f, 0.22987797856330872f,
                                   -3.182326555252075f, -0.4302513301372528f}));
  EXPECT_THAT(
      Draw("TruncatedNormal", 6, DType::kFloat, 11, 12)->flat<float>(),
      Pointwise(FloatNear(2e-6), std::vector<float>{0.2353770136833191f, 0.315420925617218f,
                                                    0.22987797856330872f, -0.4302513301372528f,
                                                    -0.4261144995689392f, -0.311722069978714f}));
  EXPECT_THAT(
      Draw("TruncatedNormal", 3, DType::kDouble, 11, 12)->flat<double>(),
      Pointwise(DoubleNear(1e-12),
                std::vector<double>{0.4102194181443228, 1.2827021656851463, 0.742130380444314}));
  EXPECT_THAT(OpRunner("RandomUniformInt")
                  .Attr("seed", 5)
                  .Attr("seed2", 6)
                  .In(Sizes({5}))
                  .In(Tensor::Scalar<int64_t>(-3))
                  .In(Tensor::Scalar<int64_t>(400))
                  .Run1()
                  ->flat<int64_t>(),
              ElementsAre(204, 169, 314, 123, 261));
  EXPECT_THAT(OpRunner("RandomShuffle")
                  .Attr("seed", 3)
                  .Attr("seed2", 4)
                  .In(Tensor::Vector<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))
                  .Run1()
                  ->flat<int32_t>(),
              ElementsAre(1, 5, 3, 8, 0, 4, 7, 6, 9, 2));
  // The second run of a node that draws 5 numbers begins 5 * 256 blocks later.
  Philox second(87654321, 5);
  second.Skip(5 * Generator::kWordsPerSample);
  EXPECT_EQ(UniformFloat(second.Next()[0]), 0.49199604988098145f);
}

TEST(RandomTest, IntegersCoverTheirRange) {
  const auto x = OpRunner("RandomUniformInt")
                     .Attr("seed", 5)
                     .In(Sizes({10000}))
                     .In(Tensor::Scalar<int64_t>(-3))
                     .In(Tensor::Scalar<int64_t>(4))
                     .Run1();
  ASSERT_TRUE(x.ok()) << x.status();
  std::vector<int> counts(7);
  for (int64_t v : x->flat<int64_t>()) {
    ASSERT_GE(v, -3);
    ASSERT_LT(v, 4);
    ++counts[v + 3];
  }
  for (int count : counts) EXPECT_NEAR(count, 10000 / 7, 150);
}

TEST(RandomTest, ShuffleKeepsRowsTogether) {
  std::vector<float> values(200);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto y =
      OpRunner("RandomShuffle").Attr("seed", 3).In(Tensor::Of<float>({100, 2}, values)).Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  std::set<float> seen;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(y->flat<float>()[2 * i] + 1, y->flat<float>()[2 * i + 1]);
    seen.insert(y->flat<float>()[2 * i]);
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_NE(y->flat<float>()[0] + y->flat<float>()[2], 2);
}

TEST(RandomTest, MultinomialFollowsTheLogits) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto y = OpRunner("Multinomial")
                     .Attr("seed", 3)
                     .In(Tensor::Of<float>({1, 3}, {std::log(0.25f), -inf, std::log(0.75f)}))
                     .In(Tensor::Scalar<int32_t>(20000))
                     .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  int counts[3] = {};
  for (int64_t v : y->flat<int64_t>()) ++counts[v];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 5000, 200);
}

TEST(RandomTest, GammaHasItsMeanAndVariance) {
  const auto y = OpRunner("RandomGamma")
                     .Attr("seed", 9)
                     .In(Sizes({100000}))
                     .In(Tensor::Vector<float>({0.5f, 3}))
                     .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  for (int k : {0, 1}) {
    std::vector<float> x;
    for (int i = 0; i < 100000; ++i) x.push_back(y->flat<float>()[2 * i + k]);
    const double alpha = k == 0 ? 0.5 : 3;
    EXPECT_NEAR(MomentsOf(x).mean, alpha, 0.03);
    EXPECT_NEAR(MomentsOf(x).variance, alpha, 0.1);
  }
}

TEST(RandomTest, MistakesAreNamed) {
  const auto uniform = [](Tensor sizes) {
    return std::string(
        OpRunner("RandomUniform").Attr("dtype", DType::kFloat).In(sizes).Run1().status().message());
  };
  EXPECT_THAT(uniform(Sizes({2, -1})), HasSubstr("-1"));
  EXPECT_THAT(uniform(Tensor::Scalar<int32_t>(3)), HasSubstr("rank 1"));
  EXPECT_FALSE(uniform(Tensor::Vector<int64_t>({int64_t{1} << 40, int64_t{1} << 40})).empty());
  EXPECT_THAT(std::string(OpRunner("RandomUniformInt")
                              .In(Sizes({1}))
                              .In(Tensor::Scalar<int32_t>(4))
                              .In(Tensor::Scalar<int32_t>(4))
                              .Run1()
                              .status()
                              .message()),
              HasSubstr("minval < maxval"));
  EXPECT_FALSE(OpRunner("RandomGamma").In(Sizes({1})).In(Tensor::Vector<float>({-1})).Run1().ok());
}

}  // namespace
}  // namespace penstock
