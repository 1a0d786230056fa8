// SPDX-License-Identifier: Apache-2.0
//
// Tests normalisation ops. The expected numbers are TensorFlow's.
#include <cmath>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, values);
}
const Tensor kImage = Floats({1, 2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
const Tensor kOnes = Tensor::Vector<float>({1, 1, 1});
const Tensor kZeros = Tensor::Vector<float>({0, 0, 0});

TEST(FusedBatchNormTest, TrainingCarriesTheRunningStatisticsOn) {
  const auto y = OpRunner("FusedBatchNormV3")
                     .In(kImage)
                     .In(kOnes)
                     .In(kZeros)
                     .In(Tensor::Vector<float>({1, 2, 3}))
                     .In(Tensor::Vector<float>({4, 5, 6}))
                     .Attr("exponential_avg_factor", 0.25f)
                     .Run();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_NEAR((*y)[0].flat<float>()[0], -4.5 / std::sqrt(11.2501), 1e-6);
  EXPECT_THAT((*y)[1].flat<float>(), ElementsAre(1.875, 2.875, 3.875));
  EXPECT_THAT((*y)[2].flat<float>(), ElementsAre(6.75, 7.5, 8.25));
  EXPECT_THAT((*y)[3].flat<float>(), ElementsAre(4.5, 5.5, 6.5));
  EXPECT_THAT((*y)[4].flat<float>(), ElementsAre(11.25, 11.25, 11.25));
}

TEST(FusedBatchNormTest, InferenceTakesThemAsTheyAre) {
  const auto d = OpRunner("FusedBatchNormGradV3")
                     .In(kImage)
                     .In(kImage)
                     .In(kOnes)
                     .In(Tensor::Vector<float>({1, 2, 3}))
                     .In(Tensor::Vector<float>({4, 5, 6}))
                     .In(Tensor::Vector<float>({}))
                     .Attr("is_training", false)
                     .Run();
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT((*d)[2].flat<float>(), ElementsAre(18, 22, 26));
  EXPECT_NEAR((*d)[0].flat<float>()[1], 0.4472091, 1e-6);
}

TEST(FusedBatchNormTest, ChannelsFirstIsTheSameTransposed) {
  const auto first = OpRunner("FusedBatchNorm")
                         .In(Floats({1, 3, 2, 2}, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}))
                         .In(kOnes)
                         .In(kZeros)
                         .In(Tensor::Vector<float>({}))
                         .In(Tensor::Vector<float>({}))
                         .Attr("data_format", "NCHW")
                         .Run();
  const auto last = OpRunner("FusedBatchNorm")
                        .In(kImage)
                        .In(kOnes)
                        .In(kZeros)
                        .In(Tensor::Vector<float>({}))
                        .In(Tensor::Vector<float>({}))
                        .Run();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(last.ok()) << last.status();
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 4; ++p) {
      EXPECT_NEAR((*first)[0].flat<float>()[c * 4 + p], (*last)[0].flat<float>()[p * 3 + c], 1e-6);
    }
  }
}

TEST(FusedBatchNormTest, LargeMeansDoNotCancelTheVariance) {
  std::vector<float> values(3000);
  for (int i = 0; i < 3000; ++i) values[i] = 10000 + static_cast<float>(i % 2);
  const auto y = OpRunner("FusedBatchNorm")
                     .In(Floats({3000, 1, 1, 1}, values))
                     .In(Tensor::Vector<float>({1}))
                     .In(Tensor::Vector<float>({0}))
                     .In(Tensor::Vector<float>({}))
                     .In(Tensor::Vector<float>({}))
                     .Run();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_NEAR((*y)[3].flat<float>()[0], 10000.5, 1e-3);
  EXPECT_NEAR((*y)[4].flat<float>()[0], 0.25, 1e-5);
}

TEST(FusedBatchNormTest, NothingToNormaliseHasNoMean) {
  const auto y = OpRunner("FusedBatchNormV2")
                     .In(Floats({0, 2, 2, 3}, {}))
                     .In(kOnes)
                     .In(kZeros)
                     .In(Tensor::Vector<float>({}))
                     .In(Tensor::Vector<float>({}))
                     .Run();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(std::isnan((*y)[1].flat<float>()[0]));
  EXPECT_THAT((*y)[4].flat<float>(), ElementsAre(0, 0, 0));
}

TEST(FusedBatchNormTest, MistakesAreNamed) {
  const auto run = [](const Tensor& x, const Tensor& scale, const Tensor& mean) {
    return OpRunner("FusedBatchNorm")
        .In(x)
        .In(scale)
        .In(kZeros)
        .In(mean)
        .In(kOnes)
        .Attr("is_training", false)
        .SetKnownInputs(OpRunner::Known::kNothing)
        .Run()
        .status();
  };
  EXPECT_THAT(run(kImage, Tensor::Vector<float>({1}), kZeros).message(), HasSubstr("scale"));
  EXPECT_THAT(run(kImage, kOnes, Tensor::Vector<float>({})).message(), HasSubstr("mean"));
  EXPECT_THAT(run(kOnes, kOnes, kOnes).message(), HasSubstr("4 dimensions"));
}

TEST(BatchNormWithGlobalNormalizationTest, ScalesOnlyWhenAsked) {
  for (bool scale : {false, true}) {
    const auto y = OpRunner("BatchNormWithGlobalNormalization")
                       .In(Floats({1, 1, 2, 1}, {3, 5}))
                       .In(Tensor::Vector<float>({1}))
                       .In(Tensor::Vector<float>({3}))
                       .In(Tensor::Vector<float>({10}))
                       .In(Tensor::Vector<float>({2}))
                       .Attr("variance_epsilon", 1.0f)
                       .Attr("scale_after_normalization", scale)
                       .Run1();
    ASSERT_TRUE(y.ok()) << y.status();
    if (scale) {
      EXPECT_THAT(y->flat<float>(), ElementsAre(12, 14));
    } else {
      EXPECT_THAT(y->flat<float>(), ElementsAre(11, 12));
    }
  }
}

// One channel, t = {3, 5}, m = 1, v + epsilon = 4, gamma = 2, backprop = {1, 10}.
TEST(BatchNormWithGlobalNormalizationTest, GradientsByHand) {
  const auto d = OpRunner("BatchNormWithGlobalNormalizationGrad")
                     .In(Floats({1, 1, 2, 1}, {3, 5}))
                     .In(Tensor::Vector<float>({1}))
                     .In(Tensor::Vector<float>({3}))
                     .In(Tensor::Vector<float>({2}))
                     .In(Floats({1, 1, 2, 1}, {1, 10}))
                     .Attr("variance_epsilon", 1.0f)
                     .Attr("scale_after_normalization", true)
                     .Run();
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT((*d)[0].flat<float>(), ElementsAre(1, 10));
  EXPECT_THAT((*d)[1].flat<float>(), ElementsAre(-11));
  EXPECT_THAT((*d)[2].flat<float>(), ElementsAre(-5.25));
  EXPECT_THAT((*d)[3].flat<float>(), ElementsAre(11));
  EXPECT_THAT((*d)[4].flat<float>(), ElementsAre(21));
}

TEST(LrnTest, NeighbouringChannelsDamp) {
  const Tensor x = Floats({1, 1, 1, 5}, {1, 2, 3, 4, 5});
  const Attrs attrs = {{"depth_radius", 1}, {"bias", 2.0f}, {"alpha", 0.5f}, {"beta", 0.75f}};
  OpRunner forward("LRN"), backward("LRNGrad");
  for (const auto& [name, value] : attrs) {
    forward.Attr(name, value);
    backward.Attr(name, value);
  }
  const auto y = forward.In(x).Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), Pointwise(FloatNear(1e-6f), {0.32366118f, 0.38490018f, 0.36644453f,
                                                             0.33770478f, 0.48398641f}));
  const auto dx = backward.In(Floats({1, 1, 1, 5}, {1, -1, 2, 0, 3})).In(x).In(*y).Run1();
  ASSERT_TRUE(dx.ok()) << dx.status();
  EXPECT_THAT(dx->flat<float>(),
              Pointwise(FloatNear(1e-6f),
                        {0.30179265f, -0.30281341f, 0.24058202f, -0.32684711f, 0.04839861f}));
}

}  // namespace
}  // namespace penstock
