// SPDX-License-Identifier: Apache-2.0
//
// Tests resizing, crops, boxes and colors. The expected numbers are TensorFlow's.
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

using Values = std::vector<float>;

StatusOr<std::vector<Tensor>> RunAll(const char* op, std::vector<Tensor> inputs,
                                     const Attrs& attrs = {}) {
  OpRunner run(op);
  for (Tensor& input : inputs) run.In(std::move(input));
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run();
}
Values RunOne(const char* op, std::vector<Tensor> inputs, const Attrs& attrs = {}) {
  const auto outputs = RunAll(op, std::move(inputs), attrs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  return Values((*outputs)[0].flat<float>().begin(), (*outputs)[0].flat<float>().end());
}
std::string Mistake(const char* op, std::vector<Tensor> inputs, const Attrs& attrs = {}) {
  return std::string(RunAll(op, std::move(inputs), attrs).status().message());
}
auto Near(const Values& values) { return Pointwise(FloatNear(1e-5f), values); }

const Tensor kImage = Tensor::Of<float>({1, 2, 3, 1}, {1, 3, 2, 8, 4, 0});
const Tensor kSize = Tensor::Vector<int32_t>({3, 2});
const Attrs kCorners = {{"align_corners", true}}, kCenters = {{"half_pixel_centers", true}};

TEST(ResizeTest, Bilinear) {
  EXPECT_THAT(RunOne("ResizeBilinear", {kImage, kSize}),
              Near({1, 2.5, 5.666667f, 2.166667f, 8, 2}));
  EXPECT_THAT(RunOne("ResizeBilinear", {kImage, kSize}, kCorners), Near({1, 2, 4.5, 1, 8, 0}));
  EXPECT_THAT(RunOne("ResizeBilinear", {kImage, kSize}, kCenters),
              Near({1.5, 2.25, 4.25, 1.625, 7, 1}));
  const Tensor dy = Tensor::Of<float>({1, 3, 2, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(RunOne("ResizeBilinearGrad", {dy, kImage}, kCenters),
              Near({1.875, 1.625, 3, 4.875, 3.625, 6}));
}

TEST(ResizeTest, WhatIsConstantStaysExactly) {
  const Tensor x = Tensor::Of<uint8_t>({1, 2, 2, 1}, {117, 117, 117, 117});
  for (float y : RunOne("ResizeBilinear", {x, Tensor::Vector<int32_t>({7, 13})}, kCenters)) {
    EXPECT_EQ(y, 117);
  }
}

TEST(ResizeTest, Bicubic) {
  EXPECT_THAT(RunOne("ResizeBicubic", {kImage, kSize}),
              Near({1, 2.6875, 5.798765f, 1.959116f, 8.777778f, 1.506945f}));
  EXPECT_THAT(RunOne("ResizeBicubic", {kImage, kSize}, kCenters),
              Near({1.010936f, 2.336498f, 4.364964f, 1.452555f, 7.718991f, 0.5686115f}));
}

TEST(ResizeTest, AreaAndNearest) {
  EXPECT_THAT(RunOne("ResizeArea", {kImage, kSize}),
              Near({1.666667f, 2.333333f, 4.166667f, 1.833333f, 6.666666f, 1.333333f}));
  EXPECT_THAT(RunOne("ResizeNearestNeighbor", {kImage, kSize}), Near({1, 3, 1, 3, 8, 4}));
  EXPECT_THAT(RunOne("ResizeNearestNeighbor", {kImage, kSize}, kCorners), Near({1, 2, 8, 0, 8, 0}));
  const Tensor dy = Tensor::Of<float>({1, 3, 2, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(RunOne("ResizeNearestNeighborGrad", {dy, Tensor::Vector<int32_t>({2, 3})}, kCenters),
              Near({1, 0, 2, 8, 0, 10}));
}

TEST(ResizeTest, MistakesAreNamed) {
  EXPECT_THAT(Mistake("ResizeBilinear", {kImage, Tensor::Vector<int32_t>({3, 0})}),
              HasSubstr("must be positive"));
  EXPECT_THAT(Mistake("ResizeArea", {kSize, kSize}), HasSubstr("rank 4"));
  EXPECT_THAT(Mistake("ResizeNearestNeighbor", {kImage, kSize},
                      {{"align_corners", true}, {"half_pixel_centers", true}}),
              HasSubstr("half_pixel_centers"));
}

TEST(CropAndResizeTest, OutsideIsExtrapolated) {
  const Tensor boxes = Tensor::Of<float>({2, 4}, {0, 0, 1, 1, 0.2, 1.2, 0.9, 1.4});
  const Tensor indices = Tensor::Vector<int32_t>({0, 0}), size = Tensor::Vector<int32_t>({2, 2});
  EXPECT_THAT(
      RunOne("CropAndResize", {kImage, boxes, indices, size}, {{"extrapolation_value", -1.0f}}),
      Near({1, 2, 8, 0, -1, -1, -1, -1}));
  EXPECT_THAT(Mistake("CropAndResize", {kImage, boxes, Tensor::Vector<int32_t>({0, 1}), size}),
              HasSubstr("box_index"));
}

TEST(NonMaxSuppressionTest, BestFirstAndNoneThatOverlapsABetterOne) {
  const Tensor boxes = Tensor::Of<float>(
      {5, 4}, {0, 0, 1, 1, 0, .1, 1, 1.1, 0, -.1, 1, .9, 0, 10, 1, 11, 1, 11.1, 0, 10.1});
  const Tensor scores = Tensor::Vector<float>({.9, .75, .6, .95, .5});
  const auto number = [](float x) { return Tensor::Scalar<float>(x); };
  const auto hard = RunAll("NonMaxSuppressionV3",
                           {boxes, scores, Tensor::Scalar<int32_t>(3), number(.5), number(.4)});
  ASSERT_TRUE(hard.ok()) << hard.status();
  EXPECT_THAT((*hard)[0].flat<int32_t>(), ElementsAre(3, 0));
  const auto soft =
      RunAll("NonMaxSuppressionV5",
             {boxes, scores, Tensor::Scalar<int32_t>(6), number(.5), number(.1), number(.5)},
             {{"pad_to_max_output_size", true}});
  ASSERT_TRUE(soft.ok()) << soft.status();
  EXPECT_THAT((*soft)[0].flat<int32_t>(), ElementsAre(3, 0, 1, 4, 2, 0));
  EXPECT_THAT((*soft)[1].flat<float>(), Near({.95f, .9f, .38400355f, .2560026f, .19697244f, 0}));
  EXPECT_EQ((*soft)[2].scalar<int32_t>(), 5);
  EXPECT_THAT(
      Mistake("NonMaxSuppressionV2", {boxes, scores, Tensor::Scalar<int32_t>(-1), number(.5)}),
      HasSubstr("max_output_size"));
}

// The expected values are those of TensorFlow 2.21.
TEST(CombinedNonMaxSuppressionTest, TheBestOfAllClasses) {
  const Tensor boxes = Tensor::Of<float>(
      {1, 6, 1, 4},
      {0, 0, 1, 1, 0, .1, 1, 1.1, 0, -.1, 1, .9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101});
  const Tensor scores =
      Tensor::Of<float>({1, 6, 2}, {.9, .01, .75, .05, .6, .04, .95, 0, .5, .3, .3, .7});
  const auto number = [](float x) { return Tensor::Scalar<float>(x); };
  const auto count = [](int32_t x) { return Tensor::Scalar<int32_t>(x); };
  const auto run = [&](int32_t per_class, int32_t total, Attrs attrs) {
    return RunAll("CombinedNonMaxSuppression",
                  {boxes, scores, count(per_class), count(total), number(.5), number(0)}, attrs);
  };
  const auto best = run(4, 3, {});
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_THAT((*best)[0].flat<float>(), Near({0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1})) << "clipped";
  EXPECT_THAT((*best)[1].flat<float>(), Near({.95f, .9f, .7f}));
  EXPECT_THAT((*best)[2].flat<float>(), Near({0, 0, 1}));
  EXPECT_THAT((*best)[3].flat<int32_t>(), ElementsAre(3));
  const auto padded = run(1, 4, {{"clip_boxes", false}});
  ASSERT_TRUE(padded.ok()) << padded.status();
  EXPECT_THAT((*padded)[0].flat<float>(),
              Near({0, 10, 1, 11, 0, 100, 1, 101, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_THAT((*padded)[1].flat<float>(), Near({.95f, .7f, 0, 0}));
  EXPECT_THAT((*padded)[3].flat<int32_t>(), ElementsAre(2));
  const auto per_class = run(2, 9, {{"pad_per_class", true}});
  ASSERT_TRUE(per_class.ok()) << per_class.status();
  EXPECT_THAT((*per_class)[1].flat<float>(), Near({.95f, .9f, .7f, .3f}));
}

TEST(CombinedNonMaxSuppressionTest, ClassesWithoutBoxes) {
  constexpr int64_t kClasses = int64_t{1} << 60;
  const auto found =
      RunAll("CombinedNonMaxSuppression",
             {Tensor(DType::kFloat, {1, 0, 1, 4}), Tensor(DType::kFloat, {1, 0, kClasses}),
              Tensor::Scalar<int32_t>(1 << 30), Tensor::Scalar<int32_t>(2),
              Tensor::Scalar<float>(.5), Tensor::Scalar<float>(0)},
             {{"pad_per_class", true}});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT((*found)[1].flat<float>(), ElementsAre(0, 0));
  EXPECT_THAT((*found)[3].flat<int32_t>(), ElementsAre(0));
}

TEST(CombinedNonMaxSuppressionTest, Mistakes) {
  const auto error = [](const Shape& boxes, const Shape& scores, int32_t per_class, int32_t total,
                        float overlap) {
    const auto zeros = [](const Shape& shape) {
      return Tensor::Of<float>(shape, std::vector<float>(shape.num_elements()));
    };
    return Mistake("CombinedNonMaxSuppression",
                   {zeros(boxes), zeros(scores), Tensor::Scalar(per_class), Tensor::Scalar(total),
                    Tensor::Scalar(overlap), Tensor::Scalar(0.0f)});
  };
  EXPECT_THAT(error({1, 3, 1, 4}, {1, 3, 2}, 0, 1, .5), HasSubstr("max_size_per_class must be"));
  EXPECT_THAT(error({1, 3, 1, 4}, {1, 3, 2}, 1, 0, .5), HasSubstr("max_total_size must be > 0"));
  EXPECT_THAT(error({1, 3, 1, 4}, {1, 3, 2}, 1, 1, 2),
              HasSubstr("iou_threshold must be in [0, 1]"));
  EXPECT_THAT(error({1, 3, 1, 4}, {1, 2, 2}, 1, 1, 0), HasSubstr("scores has incompatible shape"));
  EXPECT_THAT(error({1, 3, 1, 3}, {1, 3, 2}, 1, 1, 0), HasSubstr("the last of size 4"));
  EXPECT_THAT(error({1, 3, 3, 4}, {1, 3, 2}, 1, 1, 0), HasSubstr("either 1 or num classes"));
  constexpr int64_t kHuge = int64_t{1} << 60;
  EXPECT_THAT(error({kHuge, 0, 1, 4}, {kHuge, 0, 1}, 1, 1 << 30, 0), HasSubstr("more elements"));
  EXPECT_THAT(error({0, kHuge, 1, 4}, {0, kHuge, 1}, 1, 1, 0), HasSubstr("less than 2^31 boxes"));
}

TEST(StatelessSampleDistortedBoundingBoxTest, DrawsWhatTensorFlowDraws) {
  const auto box =
      RunAll("StatelessSampleDistortedBoundingBox",
             {Tensor::Vector<int32_t>({40, 50, 3}), Tensor::Of<float>({1, 1, 4}, {.1, .2, .7, .8}),
              Tensor::Scalar<float>(.1), Tensor::Vector<int32_t>({3, 5})});
  ASSERT_TRUE(box.ok()) << box.status();
  EXPECT_THAT((*box)[0].flat<int32_t>(), ElementsAre(5, 11, 0));
  EXPECT_THAT((*box)[1].flat<int32_t>(), ElementsAre(10, 13, -1));
  EXPECT_THAT((*box)[2].flat<float>(), Near({.125f, .22f, .375f, .48f}));
}

TEST(SampleDistortedBoundingBoxTest, DrawsWhatTensorFlowDraws) {
  const auto box =
      RunAll("SampleDistortedBoundingBoxV2",
             {Tensor::Vector<int32_t>({40, 50, 3}), Tensor::Of<float>({1, 1, 4}, {.1, .2, .7, .8}),
              Tensor::Scalar<float>(.1)},
             {{"seed", 3}, {"seed2", 5}});
  ASSERT_TRUE(box.ok()) << box.status();
  EXPECT_THAT((*box)[0].flat<int32_t>(), ElementsAre(0, 1, 0));
  EXPECT_THAT((*box)[1].flat<int32_t>(), ElementsAre(39, 38, -1));
  EXPECT_THAT((*box)[2].flat<float>(), Near({0, .02f, .975f, .78f}));
}

TEST(ExtractGlimpseTest, TheVersionsCenterDifferently) {
  Values numbers(30);
  for (int i = 0; i < 30; ++i) numbers[i] = static_cast<float>(i);
  const Tensor image = Tensor::Of<float>({1, 5, 6, 1}, numbers);
  const Tensor size = Tensor::Vector<int32_t>({3, 2});
  const Tensor at = Tensor::Of<float>({1, 2}, {.4, -.9});
  const auto glimpse = [&](const char* op, bool centered, bool normalized) {
    return RunOne(op, {image, size, at},
                  {{"centered", centered}, {"normalized", normalized}, {"noise", "zero"}});
  };
  EXPECT_THAT(glimpse("ExtractGlimpse", true, true), Near({12, 13, 18, 19, 24, 25}));
  EXPECT_THAT(glimpse("ExtractGlimpse", true, false), Near({7, 8, 13, 14, 19, 20}));
  EXPECT_THAT(glimpse("ExtractGlimpse", false, false), Near({0, 0, 0, 0, 0, 6}));
  EXPECT_THAT(glimpse("ExtractGlimpseV2", true, true), Near({12, 13, 18, 19, 24, 25}));
  EXPECT_THAT(glimpse("ExtractGlimpseV2", true, false), Near({14, 15, 20, 21, 26, 27}));
  EXPECT_THAT(glimpse("ExtractGlimpseV2", false, false), Near({0, 1, 6, 7, 12, 13}));
}

TEST(DrawBoundingBoxesTest, OutlinesAreClipped) {
  const Tensor image = Tensor::Of<float>({1, 3, 4, 1}, Values(12));
  EXPECT_THAT(RunOne("DrawBoundingBoxes", {image, Tensor::Of<float>({1, 1, 4}, {0, .4, 1.5, 1})}),
              Near({0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_THAT(RunOne("DrawBoundingBoxesV2", {Tensor::Of<float>({1, 2, 2, 1}, Values(4)),
                                             Tensor::Of<float>({1, 1, 4}, {0, 0, .5, .5}),
                                             Tensor::Of<float>({1, 1}, {.25})}),
              Near({.25, 0, 0, 0}));
}

TEST(ColorTest, AgreesWithTensorFlow) {
  const Tensor p = Tensor::Of<float>({2, 2, 3}, {.2, .5, .8, .9, .1, .4, .5, .5, .5, .3, .7, .3});
  EXPECT_THAT(RunOne("RGBToHSV", {p}),
              Near({.5833334f, .75, .8, .9375, .8888888f, .9, 0, 0, .5, .3333333f, .5714285f, .7}));
  const auto hsv = RunAll("RGBToHSV", {p});
  EXPECT_THAT(RunOne("HSVToRGB", {(*hsv)[0]}),
              Near({.2, .5, .8, .9, .1, .4, .5, .5, .5, .3, .7, .3}));
  EXPECT_THAT(RunOne("AdjustHue", {p, Tensor::Scalar<float>(.3)}),
              Near({.8, .2, .62, .56, .9, .1, .5, .5, .5, .3, .38, .7}));
  EXPECT_THAT(RunOne("AdjustSaturation", {p, Tensor::Scalar<float>(1.5)}),
              Near({0, .4, .8, .9, 0, .3375, .5, .5, .5, .1, .7, .1}));
  EXPECT_THAT(RunOne("AdjustContrastv2", {p, Tensor::Scalar<float>(2)}),
              Near({-.075, .55, 1.1, 1.325, -.25, .3, .525, .55, .5, .125, .95, .1}));
}

// The expected numbers are those of TensorFlow 2.21.
TEST(ColorTest, ContrastWithinLimits) {
  const auto contrast = [](Tensor images, float factor, float low, float high) {
    return RunOne("AdjustContrast", {std::move(images), Tensor::Scalar(factor), Tensor::Scalar(low),
                                     Tensor::Scalar(high)});
  };
  std::vector<uint8_t> bytes;
  std::vector<int32_t> ints;
  for (int i = 0; i < 12; ++i) {
    bytes.push_back(static_cast<uint8_t>(9 * i));
    ints.push_back(9 * i - 40);
  }
  EXPECT_THAT(contrast(Tensor::Of<uint8_t>({1, 2, 2, 3}, bytes), 1.37f, 3, 70.5f),
              Near({3, 3, 3.015, 22.005, 31.005, 40.005, 58.995, 67.995, 70.5, 70.5, 70.5, 70.5}));
  EXPECT_THAT(contrast(Tensor::Of<int32_t>({1, 2, 2, 3}, ints), -2.3f, -30, 50),
              Near({50, 50, 50, 31.55, 40.55, 49.55, -30, -21.55, -12.55, -30, -30, -30}));
  // If the lower limit exceeds the upper one, the result is the lower limit.
  EXPECT_THAT(contrast(Tensor::Of<int32_t>({1, 2, 2, 3}, ints), 1.37f, 50, -50),
              Near(std::vector<float>(12, 50)));
}

}  // namespace
}  // namespace penstock
