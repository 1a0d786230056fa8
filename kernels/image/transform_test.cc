// SPDX-License-Identifier: Apache-2.0
//
// Tests projective transforms, and scaling by filters. The expected numbers are those of TensorFlow
// 2.21.
#include <numeric>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tables below use its names

Tensor Image() {
  std::vector<float> pixels(12);
  std::iota(pixels.begin(), pixels.end(), 1.f);
  return F({1, 3, 4, 1}, pixels);
}

const Tensor kTransform = F({1, 8}, {1.1f, .2f, -3.3f, .1f, .9f, 2.25f, .01f, .02f});

struct Projection {
  const char *interpolation, *fill_mode;
  std::vector<float> expected;
};

TEST(ProjectiveTransform, FillsInEveryMode) {
  const Projection cases[] = {
      {"NEAREST", "CONSTANT", {7, 7, 7, 9, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
      {"NEAREST", "REFLECT", {11, 10, 9, 9, 10, 11, 10, 9, 9, 10, 7, 6, 5, 5, 6, 3, 1, 1, 2, 3}},
      {"NEAREST", "WRAP", {4, 3, 4, 1, 2, 4, 3, 4, 1, 2, 6, 7, 4, 1, 2, 2, 4, 4, 2, 3}},
      {"NEAREST", "NEAREST", {9, 9, 9, 9, 10, 9, 9, 9, 9, 10, 9, 9, 9, 9, 10, 9, 9, 9, 10, 11}},
      {"BILINEAR", "CONSTANT", {7, 7, 7, 8.048544, 8.381842, 7, 7, 7, 7, 7,
                                7, 7, 7, 7,        7,        7, 7, 7, 7, 7}},
      {"BILINEAR", "REFLECT", {11.3,      10.178217, 9.078431, 9,        10.057693,
                               10.686274, 9.320388,  8.115384, 8.047619, 8.830189,
                               7.211537,  5.904761,  4.962263, 5.112151, 5.90741,
                               3.867925,  2.616825,  1.925928, 2.284405, 3.09091}},
      {"BILINEAR", "WRAP", {4,        2.821782, 3.921569, 1,        2.057693, 4.352942, 3.679612,
                            4.884616, 2.333334, 3.622642, 5.788463, 7.095239, 4,        1.373832,
                            2.388889, 2.45283,  3.504673, 4,        1.550459, 2.545455}},
      {"BILINEAR", "NEAREST", {9, 9, 9, 9,        10.057693, 9, 9, 9, 9.190476, 10.226416,
                               9, 9, 9, 9.373832, 10.388889, 9, 9, 9, 9.550459, 10.545454}},
  };
  for (const Projection& c : cases) {
    SCOPED_TRACE(StrCat(c.interpolation, " ", c.fill_mode));
    ExpectOutputs({"ImageProjectiveTransformV3",
                   {Image(), kTransform, I({2}, {4, 5}), F({}, {7})},
                   {{"interpolation", c.interpolation}, {"fill_mode", c.fill_mode}}},
                  {F({1, 4, 5, 1}, c.expected)}, 1e-5);
  }
}

TEST(ProjectiveTransform, OfBytes) {
  const Tensor image = Image();
  std::vector<uint8_t> bytes(image.flat<float>().begin(), image.flat<float>().end());
  ExpectOutputs(
      {"ImageProjectiveTransformV2",
       {U8({1, 3, 4, 1}, bytes), kTransform, I({2}, {4, 5})},
       {{"interpolation", "BILINEAR"}, {"fill_mode", "REFLECT"}}},
      {U8({1, 4, 5, 1}, {11, 10, 9, 9, 10, 10, 9, 8, 8, 8, 7, 5, 4, 5, 5, 3, 2, 1, 2, 3})});
}

TEST(ProjectiveTransform, SurvivesAbsurdTransforms) {
  for (const float factor : {NAN, INFINITY, -INFINITY, 1e38f, -1e30f, -1e9f}) {
    for (const char* mode : {"CONSTANT", "REFLECT", "WRAP", "NEAREST"}) {
      for (const char* interpolation : {"NEAREST", "BILINEAR"}) {
        const OpCall call = {
            "ImageProjectiveTransformV2",
            {Image(), F({1, 8}, {factor, 0, 1, 0, factor, 0, 0, factor}), I({2}, {2, 3})},
            {{"interpolation", interpolation}, {"fill_mode", mode}}};
        EXPECT_EQ(call.Run1().shape(), Shape({1, 2, 3, 1}));
      }
    }
  }
}

TEST(ProjectiveTransform, MistakesAreNamed) {
  const auto call = [](Tensor transform, Tensor size, const char* interpolation, const char* mode) {
    return OpCall{"ImageProjectiveTransformV2",
                  {Image(), std::move(transform), std::move(size)},
                  {{"interpolation", interpolation}, {"fill_mode", mode}}};
  };
  const Tensor size = I({2}, {2, 2});
  call(F({2, 8}, std::vector<float>(16)), size, "NEAREST", "WRAP").ExpectError("num_images x 8");
  call(F({1, 7}, std::vector<float>(7)), size, "NEAREST", "WRAP").ExpectError("num_images x 8");
  call(kTransform, I({1}, {2}), "NEAREST", "WRAP").ExpectError("output_shape");
  call(kTransform, size, "CUBIC", "WRAP").ExpectError("Invalid interpolation CUBIC");
  call(kTransform, size, "NEAREST", "ODD").ExpectError("Invalid mode ODD");
}

struct Scaled {
  const char* filter;
  bool antialias;
  std::vector<float> expected;
};

OpCall Scale(Tensor images, Tensor scale, Tensor translation, const char* filter, bool antialias) {
  return {"ScaleAndTranslate",
          {std::move(images), I({2}, {2, 3}), std::move(scale), std::move(translation)},
          {{"kernel_type", filter}, {"antialias", antialias}}};
}
const Tensor kScale = F({2}, {.6f, 1.2f}), kTranslation = F({2}, {.25f, -.5f});

TEST(ScaleAndTranslate, HasTensorFlowsFilters) {
  const Scaled cases[] = {
      {"lanczos1", true, {1.844182, 2.682643, 3.644182, 7.398223, 8.236684, 9.198224}},
      {"lanczos1", false, {1.2, 2.038461, 3, 7.848648, 8.687109, 9.648647}},
      {"lanczos3", true, {1.643964, 2.628314, 3.43498, 7.168667, 8.153017, 8.959682}},
      {"lanczos3", false, {1.077029, 2.061379, 2.868045, 8.251715, 9.236063, 10.042729}},
      {"lanczos5", true, {1.590246, 2.497816, 3.318226, 7.208846, 8.116416, 8.936826}},
      {"lanczos5", false, {1.221553, 2.129123, 2.949533, 8.576662, 9.484234, 10.304641}},
      {"gaussian", true, {2.748651, 3.55502, 4.409407, 6.908969, 7.715338, 8.569725}},
      {"gaussian", false, {1.692842, 2.499211, 3.353598, 7.669524, 8.475893, 9.33028}},
      {"box", true, {1, 2, 3, 7, 8, 9}},
      {"box", false, {1, 2, 3, 9, 10, 11}},
      {"triangle", true, {2.410256, 3.24359, 4.076923, 7.264367, 8.0977, 8.931034}},
      {"triangle", false, {1.333333, 2.166667, 3, 7.666666, 8.5, 9.333333}},
      {"keyscubic", true, {1.913811, 2.839097, 3.672431, 7.26517, 8.190455, 9.02379}},
      {"keyscubic", false, {1.093728, 2.019014, 2.852348, 7.949838, 8.875123, 9.708458}},
      {"mitchellcubic", true, {2.327377, 3.203206, 4.03654, 7.080259, 7.956089, 8.789423}},
      {"mitchellcubic", false, {1.377756, 2.253586, 3.086919, 7.822313, 8.698143, 9.531476}},
  };
  for (const Scaled& c : cases) {
    SCOPED_TRACE(c.filter);
    ExpectOutputs(Scale(Image(), kScale, kTranslation, c.filter, c.antialias),
                  {F({1, 2, 3, 1}, c.expected)}, 1e-5);
  }
}

TEST(ScaleAndTranslate, Gradient) {
  ExpectOutputs({"ScaleAndTranslateGrad",
                 {F({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}), Image(), kScale, kTranslation},
                 {{"kernel_type", "triangle"}}},
                {F({1, 3, 4, 1}, {0.579134, 1.651194, 2.67153, 0, 1.37489, 3.003979, 3.960654, 0,
                                  1.37931, 2.844827, 3.534482, 0})},
                1e-5);
}

TEST(ScaleAndTranslate, MistakesAreNamed) {
  const auto call = [](Tensor scale, Tensor translation, const char* filter) {
    return Scale(Image(), std::move(scale), std::move(translation), filter, true);
  };
  call(kScale, kTranslation, "odd").ExpectError("Unrecognized kernel type: odd");
  call(F({2}, {0, 1}), kTranslation, "box").ExpectError("scale must be greater than zero");
  call(F({2}, {1, NAN}), kTranslation, "box").ExpectError("scale must be");
  call(kScale, F({2}, {1, INFINITY}), "box").ExpectError("translation must be finite");
  call(F({1}, {1}), kTranslation, "box").ExpectError("scale must have shape [2]");
  // The translated image lies outside of the output.
  ExpectOutputs(call(kScale, F({2}, {1e30f, 0}), "box"), {F({1, 2, 3, 1}, {0, 0, 0, 0, 0, 0})});
}

}  // namespace
}  // namespace penstock
