// SPDX-License-Identifier: Apache-2.0
//
// Tests convolutions of padded and resized images, and Conv. The expected numbers are those of
// TensorFlow 2.21.
#include <vector>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names

const Tensor kPaddedImage =
    F({1, 3, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18});
const Tensor kPaddedFilter = F({2, 2, 2, 1}, {-3, -2, -1, 0, 1, 2, 3, 4});
const Tensor kUneven = I({4, 2}, {0, 0, 1, 2, 2, 1, 0, 0});

Attrs PadConvAttrs(const char* mode, int64_t stride, const char* padding) {
  return {{"mode", mode},
          {"strides", std::vector<int64_t>{1, stride, stride, 1}},
          {"padding", padding}};
}

OpCall PadConv(const Tensor& paddings, const char* mode, int64_t stride, const char* padding) {
  return {"FusedPadConv2D",
          {kPaddedImage, paddings, kPaddedFilter},
          PadConvAttrs(mode, stride, padding)};
}

TEST(FusedPadConv2D, PadsByReflection) {
  ExpectOutputs(PadConv(kUneven, "REFLECT", 2, "VALID"),
                {F({1, 3, 3, 1}, {-24, -16, -24, 96, 104, 96, -24, -16, -24})});
  ExpectOutputs(PadConv(kUneven, "SYMMETRIC", 2, "VALID"),
                {F({1, 3, 3, 1}, {4, 20, 24, 88, 104, 108, -8, 8, 12})});
  ExpectOutputs(PadConv(kUneven, "REFLECT", 3, "SAME"), {F({1, 2, 2, 1}, {-24, -8, 0, 16})});
  ExpectOutputs(PadConv(kUneven, "SYMMETRIC", 3, "SAME"), {F({1, 2, 2, 1}, {4, 28, 52, 76})});
}

TEST(FusedPadConv2D, Mistakes) {
  const auto paddings = [](std::vector<int32_t> values) { return I({4, 2}, values); };
  PadConv(paddings({0, 0, 3, 2, 2, 1, 0, 0}), "REFLECT", 2, "VALID")
      .ExpectError("less than the dimension size");
  PadConv(paddings({0, 0, -1, 2, 2, 1, 0, 0}), "REFLECT", 2, "VALID").ExpectError("paddings");
  PadConv(paddings({0, 1, 1, 2, 2, 1, 0, 0}), "SYMMETRIC", 2, "VALID").ExpectError("batches");
  PadConv(paddings({0, 0, 1, 2, 2, 1, 1, 1}), "SYMMETRIC", 2, "VALID").ExpectError("channels");
  PadConv(I({3, 2}, {0, 0, 1, 2, 2, 1}), "SYMMETRIC", 2, "VALID").ExpectError("4 rows");
  OpCall{"FusedPadConv2D",
         {kPaddedImage, kUneven, F({1, 1, 1, 2}, {1, 2})},
         PadConvAttrs("REFLECT", 1, "SAME")}
      .ExpectError("the same depth: 2 vs 1");
}

TEST(FusedResizeAndPadConv2D, ResizesFirst) {
  const auto call = [](const char* mode, bool align_corners, std::vector<int32_t> size) {
    Attrs attrs = PadConvAttrs(mode, 2, "VALID");
    attrs["resize_align_corners"] = align_corners;
    return OpCall{"FusedResizeAndPadConv2D",
                  {kPaddedImage, I({2}, size), I({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}), kPaddedFilter},
                  attrs};
  };
  const auto expect = [&](const char* mode, bool corners, const std::vector<float>& expected) {
    ExpectOutputs(call(mode, corners, {4, 2}), {F({1, 3, 2, 1}, expected)}, 1e-6);
  };
  expect("REFLECT", false, {-25, -25, 65, 65, 20, 20});
  expect("REFLECT", true, {-24, -24, 56, 56, 8, 8});
  expect("SYMMETRIC", false, {8, 20, 71, 83, 56, 68});
  expect("SYMMETRIC", true, {8, 24, 64, 80, 56, 72});
  call("REFLECT", false, {0, 2}).ExpectError("positive");
}

TEST(Conv, ImagesAndVolumes) {
  std::vector<float> numbers;
  for (int i = 1; i <= 16; ++i) numbers.push_back(static_cast<float>(i));
  const Tensor filter = F({2, 2, 1, 1}, {-1, 0, 1, 2});
  const auto call = [&](const Shape& shape, const Tensor& filter, Attrs attrs) {
    return OpCall{"Conv", {F(shape, numbers), filter}, std::move(attrs)};
  };
  const auto attrs = [](int64_t stride, const char* padding) -> Attrs {
    return {{"strides", std::vector<int64_t>{1, stride, stride, 1}}, {"padding", padding}};
  };
  ExpectOutputs(call({1, 4, 4, 1}, filter, attrs(2, "SAME")), {F({1, 2, 2, 1}, {16, 20, 32, 36})});
  Attrs dilated = attrs(1, "VALID");
  dilated["dilations"] = std::vector<int64_t>{1, 2, 2, 1};
  ExpectOutputs(call({1, 4, 4, 1}, filter, dilated), {F({1, 2, 2, 1}, {30, 32, 38, 40})});
  Attrs padded = attrs(2, "EXPLICIT");
  padded["explicit_paddings"] = std::vector<int64_t>{0, 0, 1, 1, 1, 1, 0, 0};
  ExpectOutputs(call({1, 4, 4, 1}, filter, padded),
                {F({1, 3, 3, 1}, {2, 8, 4, 18, 26, 4, 0, -14, -16})});
  Attrs batches = attrs(1, "SAME");
  batches["batch_dims"] = int64_t{2};
  ExpectOutputs(
      call({2, 2, 2, 2, 1}, filter, batches),
      {F({2, 2, 2, 2, 1}, {10, 2, -3, -4, 18, 2, -7, -8, 26, 2, -11, -12, 34, 2, -15, -16})});
  const Tensor cube = F({2, 2, 2, 1, 1}, {-1, 0, 1, 2, 3, 4, 5, 6});
  ExpectOutputs(call({1, 2, 2, 4, 1}, cube,
                     {{"strides", std::vector<int64_t>{1, 1, 1, 1, 1}}, {"padding", "VALID"}}),
                {F({1, 1, 1, 3, 1}, {232, 252, 272})});
  call({1, 16, 1}, filter, attrs(1, "SAME")).ExpectError("batch dimensions");
  call({1, 2, 4, 2}, F({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), attrs(1, "SAME"))
      .ExpectError("needs 2 groups");
}

}  // namespace
}  // namespace penstock
