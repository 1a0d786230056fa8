// SPDX-License-Identifier: Apache-2.0
//
// Tests depthwise convolution, dilation, patches, and rounding to a few bits. The expected numbers
// are TensorFlow's.
#include <string>
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

Tensor WindowFloats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Of<float>(shape, values);
}
StatusOr<std::vector<Tensor>> RunAll(const char* op, std::vector<Tensor> inputs,
                                     const Attrs& attrs) {
  OpRunner run(op);
  for (Tensor& input : inputs) run.In(std::move(input));
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run();
}
StatusOr<Tensor> RunOne(const char* op, std::vector<Tensor> inputs, const Attrs& attrs) {
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, RunAll(op, std::move(inputs), attrs));
  return outputs[0];
}
auto Near(const std::vector<float>& values) { return Pointwise(FloatNear(1e-6f), values); }
const std::vector<int64_t> kOnesVector = {1, 1, 1, 1};

TEST(DepthwiseConvTest, ChannelsAreConvolvedAlone) {
  const Attrs attrs = {{"strides", kOnesVector}, {"padding", "SAME"}};
  const Tensor x = WindowFloats({1, 3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor w = WindowFloats({2, 1, 2, 2}, {1, -1, 2, 0, 1, 3, -2, 1});
  const auto y = RunOne("DepthwiseConv2dNative", {x, w}, attrs);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->flat<float>(), ElementsAre(4, 12, -8, 5, 8, 16, -8, 7, 12, 20, -8, 9, 16, 24, -8,
                                            11, 8, -8, 18, 0, 10, -10, 22, 0));
  const auto dx = RunOne("DepthwiseConv2dNativeBackpropInput",
                         {Tensor::Vector<int32_t>({1, 3, 2, 2}), w, *y}, attrs);
  ASSERT_TRUE(dx.ok()) << dx.status();
  EXPECT_THAT(dx->flat<float>(), ElementsAre(-8, -16, -8, -16, 32, 5, 48, 7, 88, 61, 108, 71));
  const auto dw = RunOne("DepthwiseConv2dNativeBackpropFilter",
                         {x, Tensor::Vector<int32_t>({2, 1, 2, 2}), *y}, attrs);
  ASSERT_TRUE(dw.ok()) << dw.status();
  EXPECT_THAT(dw->flat<float>(), ElementsAre(324, 92, 276, 148, 320, 544, -256, 276));
}

TEST(DepthwiseConvTest, MistakesAreNamed) {
  const Attrs attrs = {{"strides", kOnesVector}, {"padding", "VALID"}};
  const Tensor x = WindowFloats({1, 1, 1, 2}, {1, 2}), w = WindowFloats({1, 1, 1, 1}, {1});
  EXPECT_THAT(std::string(RunOne("DepthwiseConv2dNative", {x, w}, attrs).status().message()),
              HasSubstr("2 channels"));
  EXPECT_THAT(std::string(RunOne("DepthwiseConv2dNativeBackpropInput",
                                 {Tensor::Vector<int32_t>({1, 1, 1, 1}), w, x}, attrs)
                              .status()
                              .message()),
              HasSubstr("out_backprop"));
}

TEST(DilationTest, GradientsGoToTheFirstMaximum) {
  const Attrs attrs = {{"strides", kOnesVector}, {"rates", kOnesVector}, {"padding", "SAME"}};
  const Tensor x = WindowFloats({1, 2, 3, 1}, {1, 5, 2, 5, 0, 3}),
               f = WindowFloats({2, 2, 1}, {0, 1, 1, 0});
  const Tensor dy = WindowFloats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(RunOne("Dilation2D", {x, f}, attrs)->flat<float>(), ElementsAre(6, 5, 4, 5, 4, 3));
  EXPECT_THAT(RunOne("Dilation2DBackpropInput", {x, f, dy}, attrs)->flat<float>(),
              ElementsAre(0, 3, 0, 4, 0, 14));
  EXPECT_THAT(RunOne("Dilation2DBackpropFilter", {x, f, dy}, attrs)->flat<float>(),
              ElementsAre(12, 6, 3, 0));
}

TEST(ExtractImagePatchesTest, PaddingIsZero) {
  const auto y = RunOne("ExtractImagePatches", {WindowFloats({1, 2, 3, 1}, {1, 5, 2, 5, 0, 3})},
                        {{"ksizes", std::vector<int64_t>{1, 2, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 1, 2, 1}},
                         {"rates", kOnesVector},
                         {"padding", "SAME"}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), Shape({1, 2, 2, 4}));
  EXPECT_THAT(y->flat<float>(), ElementsAre(1, 5, 5, 0, 2, 0, 3, 0, 5, 0, 0, 0, 3, 0, 0, 0));
}

TEST(ExtractVolumePatchesTest, PaddingIsZero) {
  const auto y = RunOne("ExtractVolumePatches",
                        {WindowFloats({1, 2, 3, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
                        {{"ksizes", std::vector<int64_t>{1, 2, 2, 1, 1}},
                         {"strides", std::vector<int64_t>{1, 1, 2, 1, 1}},
                         {"padding", "SAME"}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), Shape({1, 2, 2, 2, 4}));
  EXPECT_THAT(y->flat<float>(), ElementsAre(1, 3, 7, 9, 2, 4, 8, 10, 5, 0, 11, 0, 6, 0, 12, 0, 7, 9,
                                            0, 0, 8, 10, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0));
}

TEST(QuantizeAndDequantizeTest, RoundsToWhatTheBitsCanTellApart) {
  const Tensor x = Tensor::Vector<float>({-1, -0.5, 0, 0.3, 0.8, 1.7});
  const auto quantize = [&](float min, float max, Attrs attrs) {
    attrs["num_bits"] = 3;
    const auto y = RunOne("QuantizeAndDequantizeV2",
                          {x, Tensor::Scalar<float>(min), Tensor::Scalar<float>(max)}, attrs);
    EXPECT_TRUE(y.ok()) << y.status();
    return std::vector<float>(y->flat<float>().begin(), y->flat<float>().end());
  };
  EXPECT_THAT(quantize(0, 0, {}),
              Near({-1.1333333f, -0.5666667f, 0, 0.5666667f, 0.5666667f, 1.7f}));
  EXPECT_THAT(quantize(-1, 1, {{"range_given", true}}),
              Near({-1, -0.6666667f, 0, 0.33333334f, 0.6666667f, 1}));
  const auto v3 =
      RunOne("QuantizeAndDequantizeV3",
             {x, Tensor::Scalar<float>(-1), Tensor::Scalar<float>(1), Tensor::Scalar<int32_t>(3)},
             {{"signed_input", false}});
  ASSERT_TRUE(v3.ok()) << v3.status();
  EXPECT_THAT(v3->flat<float>(), Near({0, 0, 0, 0.2857143f, 0.8571429f, 1}));
}

TEST(QuantizeAndDequantizeTest, SlicesHaveTheirOwnRanges) {
  const auto d =
      RunAll("QuantizeAndDequantizeV4Grad",
             {WindowFloats({2, 3}, {1, 2, 3, 4, 5, 6}), WindowFloats({2, 3}, {-3, -1, 0, .5, 1, 2}),
              Tensor::Vector<float>({-1, 0}), Tensor::Vector<float>({1, 1.5})},
             {{"axis", 0}});
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT((*d)[0].flat<float>(), ElementsAre(0, 2, 3, 4, 5, 0));
  EXPECT_THAT((*d)[1].flat<float>(), ElementsAre(0, 0));
}

TEST(QuantizeAndDequantizeTest, MistakesAreNamed) {
  const Tensor x = Tensor::Vector<float>({1}), one = Tensor::Scalar<float>(1);
  const auto message = [&](const Tensor& max, const Attrs& attrs) {
    return std::string(RunOne("QuantizeAndDequantizeV2", {x, one, max}, attrs).status().message());
  };
  EXPECT_THAT(message(Tensor::Scalar<float>(-1), {{"range_given", true}}),
              HasSubstr("Invalid range"));
  EXPECT_THAT(message(one, {{"num_bits", 63}}), HasSubstr("num_bits"));
  EXPECT_THAT(message(one, {{"axis", 1}}), HasSubstr("axis 1"));
  EXPECT_THAT(message(x, {{"range_given", true}}), HasSubstr("input_max must be a scalar"));
}

}  // namespace
}  // namespace penstock
