// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Pooling {
  std::vector<int64_t> ksize, strides;
  const char* padding;
};
const Pooling kTwoByTwo = {{1, 2, 2, 1}, {1, 2, 2, 1}, "VALID"};
const Pooling kOverlapping = {{1, 2, 2, 1}, {1, 1, 1, 1}, "SAME"};

StatusOr<Tensor> Pool(const char* op, const Pooling& p, std::vector<Tensor> inputs) {
  OpRunner run(op);
  run.Attr("ksize", p.ksize).Attr("strides", p.strides).Attr("padding", p.padding);
  for (Tensor& input : inputs) run.In(std::move(input));
  return run.Run1();
}

Tensor Image(int64_t height, int64_t width, const std::vector<float>& values) {
  return Tensor::Of<float>({1, height, width, static_cast<int64_t>(values.size()) / height / width},
                           values);
}

TEST(MaxPoolTest, TakesTheLargestOfEachWindow) {
  const Tensor x = Image(2, 4, {1, 2, 3, 4, 8, 7, 6, 5});
  const auto y = Pool("MaxPool", kTwoByTwo, {x});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(8, 6));
  const auto z = Pool("MaxPool", kOverlapping, {x});
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_THAT(z->flat<float>(), ElementsAre(8, 7, 6, 5, 8, 7, 6, 5));
}

TEST(MaxPoolTest, ChannelsAreSeparateAndNegativesAndNansSurvive) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = Pool("MaxPool", kTwoByTwo, {Image(2, 2, {-1, nan, -2, 1, -3, 2, -4, 3})});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->flat<float>()[0], -1);
  EXPECT_TRUE(std::isnan(y->flat<float>()[1]));
}

// Errors, and values without NaN, are TensorFlow's.
TEST(MaxPoolTest, WindowsOverChannels) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Pooling pairs = {{1, 1, 1, 2}, {1, 1, 1, 2}, "VALID"};
  const Tensor x = Image(1, 2, {0, -1, 2, -3, 4, -5, -7, -6});
  const auto y = Pool("MaxPool", pairs, {x});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), Shape({1, 1, 2, 2}));
  EXPECT_THAT(y->flat<float>(), ElementsAre(0, 2, 4, -6));
  const auto z = Pool("MaxPool", pairs, {Image(1, 1, {nan, 1, 2, nan})});
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_TRUE(std::isnan(z->flat<float>()[0]) && std::isnan(z->flat<float>()[1]));
  const auto v2 = [&](const std::vector<int32_t>& sizes, const std::vector<int32_t>& strides) {
    return OpRunner("MaxPoolV2")
        .In(x)
        .In(Tensor::Vector(sizes))
        .In(Tensor::Vector(strides))
        .Attr("padding", "VALID")
        .SetKnownInputs(OpRunner::Known::kShapes)
        .Run1();
  };
  const auto same = v2({1, 1, 1, 4}, {1, 1, 1, 4});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_THAT(same->flat<float>(), ElementsAre(2, 4));
  const auto error = [&](std::vector<int64_t> ksize, std::vector<int64_t> strides) {
    return std::string(Pool("MaxPool", {ksize, strides, "VALID"}, {x}).status().message());
  };
  EXPECT_THAT(error({1, 1, 1, 3}, {1, 1, 1, 3}), HasSubstr("evenly divide the input depth"));
  EXPECT_THAT(error({1, 1, 1, 2}, {1, 1, 1, 1}), HasSubstr("equal the depth stride"));
  EXPECT_THAT(error({1, 1, 2, 2}, {1, 1, 1, 2}), HasSubstr("supports exactly one of pooling"));
  EXPECT_THAT(error({1, 1, 1, 2}, {1, 1, 2, 2}), HasSubstr("strides of 1"));
  EXPECT_FALSE(v2({1, 1, 1, 3}, {1, 1, 1, 3}).ok());
}

TEST(MaxPoolTest, GradientGoesToTheFirstMaximum) {
  const Tensor x = Image(2, 4, {5, 5, 1, 2, 5, 0, 2, 2});
  const Tensor y = *Pool("MaxPool", kTwoByTwo, {x});
  const auto dx = Pool("MaxPoolGrad", kTwoByTwo, {x, y, Image(1, 2, {10, 20})});
  ASSERT_TRUE(dx.ok()) << dx.status();
  EXPECT_THAT(dx->flat<float>(), ElementsAre(10, 0, 0, 20, 0, 0, 0, 0));
  const auto back =
      Pool("MaxPoolGradGrad", kTwoByTwo, {x, y, Image(2, 4, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->flat<float>(), ElementsAre(1, 4));
}

TEST(MaxPoolTest, OverlappingWindowsAddUp) {
  const Tensor x = Image(1, 3, {0, 9, 0});
  const Pooling p = {{1, 1, 2, 1}, {1, 1, 1, 1}, "VALID"};
  const Tensor y = *Pool("MaxPool", p, {x});
  EXPECT_THAT(Pool("MaxPoolGrad", p, {x, y, Image(1, 2, {3, 4})})->flat<float>(),
              ElementsAre(0, 7, 0));
}

TEST(MaxPoolTest, V2TakesTheWindowAsInputs) {
  const auto y = OpRunner("MaxPoolV2")
                     .Attr("padding", "VALID")
                     .In(Image(2, 2, {1, 2, 3, 4}))
                     .In(Tensor::Vector<int32_t>({1, 2, 2, 1}))
                     .In(Tensor::Vector<int32_t>({1, 2, 2, 1}))
                     .Run1();
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(4));
}

TEST(AvgPoolTest, PaddingDoesNotCount) {
  const auto y = Pool("AvgPool", kOverlapping, {Image(2, 2, {1, 2, 3, 6})});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(3, 4, 4.5, 6));
}

TEST(AvgPoolTest, WindowsMayBeFarLargerThanImages) {
  const int64_t huge = int64_t{1} << 31;
  const Pooling p = {{1, huge, huge, huge, 1}, {1, 1, 1, huge, 1}, "SAME"};
  const auto y = Pool("AvgPool3D", p, {Tensor::Of<float>({1, 1, 1, 3, 1}, {1, 2, 6})});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(3));
}

TEST(AvgPoolTest, GradientIsSpreadEvenly) {
  const auto dx = Pool("AvgPoolGrad", kOverlapping,
                       {Tensor::Vector<int32_t>({1, 2, 2, 1}), Image(2, 2, {4, 2, 2, 1})});
  ASSERT_TRUE(dx.ok()) << dx.status();
  EXPECT_THAT(dx->flat<float>(), ElementsAre(1, 2, 2, 4));
}

const Pooling kVolume = {{1, 1, 2, 2, 1}, {1, 1, 2, 2, 1}, "VALID"};
Tensor Volume(const std::vector<float>& values) {
  return Tensor::Of<float>({1, 1, 2, static_cast<int64_t>(values.size()) / 2, 1}, values);
}

// As in TensorFlow: in a volume all equal maxima get the gradient, and the second gradient is taken
// from the first maximum.
TEST(MaxPool3DTest, GradientGoesToEveryMaximum) {
  const Tensor x = Volume({5, 5, 1, 2}), y = Tensor::Of<float>({1, 1, 1, 1, 1}, {5});
  EXPECT_THAT(Pool("MaxPool3D", kVolume, {x})->flat<float>(), ElementsAre(5));
  EXPECT_THAT(Pool("MaxPool3DGrad", kVolume, {x, y, Tensor::Of<float>({1, 1, 1, 1, 1}, {7})})
                  ->flat<float>(),
              ElementsAre(7, 7, 0, 0));
  EXPECT_THAT(Pool("MaxPool3DGradGrad", kVolume, {x, y, Volume({1, 2, 3, 4})})->flat<float>(),
              ElementsAre(1));
}

TEST(AvgPool3DTest, PaddingDoesNotCountInDepthEither) {
  const Pooling p = {{1, 2, 1, 1, 1}, {1, 1, 1, 1, 1}, "SAME"};
  const auto y = Pool("AvgPool3D", p, {Tensor::Of<float>({1, 3, 1, 1, 1}, {1, 2, 4})});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(1.5, 3, 4));
  const auto dx = Pool("AvgPool3DGrad", p, {Tensor::Vector<int32_t>({1, 3, 1, 1, 1}), *y});
  ASSERT_TRUE(dx.ok()) << dx.status();
  EXPECT_THAT(dx->flat<float>(), ElementsAre(0.75, 2.25, 5.5));
}

TEST(MaxPoolWithArgmaxTest, IndicesCountWithinAnImageOrOverAll) {
  const Tensor x = Tensor::Of<float>({2, 1, 2, 1}, {1, 3, 9, 4});
  for (bool batch : {false, true}) {
    const Attrs attrs = {{"ksize", std::vector<int64_t>{1, 1, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 1, 2, 1}},
                         {"padding", "VALID"},
                         {"include_batch_in_index", batch}};
    OpRunner forward("MaxPoolWithArgmax"), backward("MaxPoolGradWithArgmax");
    for (const auto& [name, value] : attrs) {
      forward.Attr(name, value);
      backward.Attr(name, value);
    }
    const auto y = forward.In(x).Run();
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(3, 9));
    EXPECT_THAT((*y)[1].flat<int64_t>(), ElementsAre(1, batch ? 2 : 0));
    const auto dx = backward.In(x).In((*y)[0]).In((*y)[1]).Run1();
    ASSERT_TRUE(dx.ok()) << dx.status();
    EXPECT_THAT(dx->flat<float>(), ElementsAre(0, 3, 9, 0));
  }
}

TEST(MaxPoolWithArgmaxTest, IndicesFromOutsideAreChecked) {
  const auto dx = OpRunner("MaxPoolGradWithArgmax")
                      .Attr("ksize", kTwoByTwo.ksize)
                      .Attr("strides", kTwoByTwo.strides)
                      .Attr("padding", "VALID")
                      .In(Image(2, 2, {1, 2, 3, 4}))
                      .In(Image(1, 1, {1}))
                      .In(Tensor::Of<int64_t>({1, 1, 1, 1}, {4}))
                      .Run1();
  EXPECT_THAT(std::string(dx.status().message()), HasSubstr("argmax[0] is 4"));
}

TEST(PoolTest, MistakesAreNamed) {
  const Tensor x = Image(2, 2, {1, 2, 3, 4});
  const auto message = [](const StatusOr<Tensor>& t) { return std::string(t.status().message()); };
  EXPECT_THAT(message(Pool("MaxPool", kTwoByTwo, {Tensor::Vector<float>({1})})), HasSubstr("[1]"));
  EXPECT_THAT(message(Pool("MaxPool", {{1, 3, 3, 1}, {1, 1, 1, 1}, "VALID"}, {x})),
              HasSubstr("does not fit"));
  EXPECT_THAT(message(Pool("MaxPool", {{1, 2, 2, 2}, {1, 1, 1, 1}, "VALID"}, {x})),
              HasSubstr("pooling across depth or"));
  EXPECT_THAT(message(Pool("MaxPoolGrad", kTwoByTwo, {x, x, x})), HasSubstr("orig_output"));
  EXPECT_THAT(message(Pool("AvgPoolGrad", kTwoByTwo, {Tensor::Vector<int32_t>({1, -2, 2, 1}), x})),
              HasSubstr("-2"));
}

}  // namespace
}  // namespace penstock
