// SPDX-License-Identifier: Apache-2.0
//
// Tests normalisation of instances, resizing, reshaping, limits and conversions per channel of
// quantized tensors. The expected numbers are those of TensorFlow 2.21, unless a test says
// otherwise.
#include <string>
#include <vector>

#include "kernels/array/testing/golden.h"

namespace penstock {
namespace {

using namespace golden;  // NOLINT: the tests below use its names

template <class Q>
Tensor IntegersOf(const Shape& shape, const std::vector<int64_t>& integers) {
  Tensor t(kDTypeOf<Q>, shape);
  for (size_t i = 0; i < integers.size(); ++i) {
    t.mutable_data<Q>()[i].value = static_cast<decltype(Q::value)>(integers[i]);
  }
  return t;
}
Tensor Bytes(const Shape& shape, const std::vector<int64_t>& integers) {
  return IntegersOf<quint8>(shape, integers);
}
Tensor Sums(const Shape& shape, const std::vector<int64_t>& integers) {
  return IntegersOf<qint32>(shape, integers);
}

const Tensor kLow = F({}, {-1}), kHigh = F({}, {2});

TEST(QuantizedInstanceNorm, ChannelsAreNormalised) {
  // The last bit of a range depends on how 1 / sqrt(x) is rounded.
  constexpr double kLastBit = 2e-7;
  const Shape shape({2, 2, 3, 2});
  const Tensor x = Bytes(shape, {175, 196, 25,  246, 67,  211, 151, 103, 92, 185, 142, 23,
                                 72,  89,  110, 42,  218, 136, 167, 230, 68, 176, 127, 135});
  const auto call = [&](const Attrs& attrs) {
    return OpCall{"QuantizedInstanceNorm", {x, kLow, kHigh}, attrs};
  };
  ExpectOutputs(call({}), {Bytes(shape, {222, 165, 16, 212, 74,  179, 189, 76, 108, 154, 177, 0, 56,
                                         76,  108, 20, 255, 133, 185, 245, 51, 181, 131, 131}),
                           F({}, {-1.8305788f}), F({}, {1.726098f})},
                kLastBit);
  ExpectOutputs(call({{"output_range_given", true}, {"given_y_min", -1.5f}, {"given_y_max", 1.0f}}),
                {Bytes(shape, {255, 201, 0,   255, 72,  221, 236, 75,  120, 186, 218, 0,
                               47,  75,  120, 0,   255, 155, 230, 255, 39,  223, 153, 154}),
                 F({}, {-1.5f}), F({}, {1.0f})});
  ExpectOutputs(call({{"variance_epsilon", 0.5f}}),
                {Bytes(shape, {225, 178, 38,  230, 90,  194, 195, 83,  121, 167, 184, 0,
                               74,  89,  121, 33,  255, 144, 192, 254, 69,  190, 142, 142}),
                 F({}, {-1.429995f}), F({}, {1.1382264f})},
                kLastBit);
  ExpectOutputs({"QuantizedInstanceNorm", {Bytes({1, 2, 2, 1}, {9, 9, 9, 9}), kLow, kHigh}},
                {Bytes({1, 2, 2, 1}, {0, 0, 0, 0}), F({}, {0}), F({}, {0.001f})});
}

TEST(QuantizedInstanceNorm, Mistakes) {
  const Tensor x = Bytes({1, 1, 2, 1}, {1, 2});
  OpCall{"QuantizedInstanceNorm", {x, kLow, kLow}}.ExpectError("x_min must be less than x_max");
  OpCall{"QuantizedInstanceNorm", {Bytes({2}, {1, 2}), kLow, kHigh}}.ExpectError("must be images");
  OpCall{"QuantizedInstanceNorm", {Bytes({0, 1, 2, 1}, {}), kLow, kHigh}}.ExpectError("images");
  OpCall{"QuantizedInstanceNorm", {x, kLow, kHigh}, {{"output_range_given", true}}}.ExpectError(
      "given_y_min must be less than given_y_max");
}

struct Grid {
  bool align_corners, half_pixel_centers;
};

OpCall ResizeCall(const Tensor& images, std::vector<int32_t> size, Grid grid) {
  return {"QuantizedResizeBilinear",
          {images, I({2}, size), kLow, kHigh},
          {{"align_corners", grid.align_corners}, {"half_pixel_centers", grid.half_pixel_centers}}};
}

TEST(QuantizedResizeBilinear, BytesHaveSevenFractionalBits) {
  const Tensor image = Bytes({1, 3, 4, 1}, {172, 0, 75, 55, 250, 6, 19, 188, 44, 191, 69, 56});
  const auto expect = [&](Grid grid, const std::vector<int64_t>& expected) {
    ExpectOutputs(ResizeCall(image, {2, 5}, grid), {Bytes({1, 2, 5, 1}, expected), kLow, kHigh});
  };
  expect({false, false}, {172, 35, 45, 67, 55, 147, 108, 66, 75, 122});
  expect({true, false}, {172, 43, 38, 70, 55, 44, 154, 130, 66, 56});
  expect({false, true}, {192, 59, 31, 69, 88, 96, 129, 100, 66, 89});
  expect({true, true}, {211, 81, 20, 57, 112, 44, 136, 145, 67, 58});
  ExpectOutputs(ResizeCall(image, {3, 4}, {true, true}), {image, kLow, kHigh});
}

TEST(QuantizedResizeBilinear, SumsHaveThirtyFractionalBits) {
  const Tensor image = Sums({1, 2, 3, 1}, {1852015768, -1019694921, -2040542283,  //
                                           1077017712, 431854331, -1052721987});
  const auto expect = [&](Grid grid, const std::vector<int64_t>& expected) {
    ExpectOutputs(ResizeCall(image, {3, 4}, grid), {Sums({1, 3, 4, 1}, expected), kLow, kHigh});
  };
  expect({false, false}, {1852015744, -301767247, -1530118623, -2040542335, 1335350385, 294841058,
                          -716995399, -1381995414, 1077017728, 593145184, -310433823, -1052721983});
  expect({false, true}, {1852015744, 57196584, -1402512695, -2040542335, 1464516736, 365493596,
                         -763687239, -1546632159, 1077017728, 673790608, -124861783, -1052721983});
  expect({true, true}, {1852015744, 416160416, -1189836229, -1870401260, 1658266240, 500729320,
                        -846270964, -1604124153, 1270767232, 669867128, -159140434, -1071569940});
}

TEST(QuantizedResizeBilinear, FloatsAreInterpolatedInFloat) {
  const Tensor image = F({1, 2, 2, 1}, {0.8738937973976135f, 0.10357394814491272f,
                                        0.07066062092781067f, -1.1071174144744873f});
  ExpectOutputs(
      ResizeCall(image, {3, 3}, {false, false}),
      {F({1, 3, 3, 1}, {0.8738937973976135f, 0.3603472113609314f, 0.10357394814491272f,
                        0.3384050130844116f, -0.3562341332435608f, -0.7035536766052246f,
                        0.07066062092781067f, -0.7145247459411621f, -1.1071174144744873f}),
       kLow, kHigh});
  ResizeCall(image, {0, 3}, {false, false}).ExpectError("positive");
  ResizeCall(F({2}, {1, 2}), {3, 3}, {false, false}).ExpectError("");
}

TEST(QuantizedReshape, RangeDoesNotChange) {
  const auto call = [](const Tensor& x, std::vector<int32_t> shape, const Tensor& low) {
    return OpCall{"QuantizedReshape",
                  {x, I({static_cast<int64_t>(shape.size())}, shape), low, kHigh}};
  };
  ExpectOutputs(call(Bytes({2, 3}, {1, 2, 3, 4, 5, 6}), {-1, 2}, kLow),
                {Bytes({3, 2}, {1, 2, 3, 4, 5, 6}), kLow, kHigh});
  ExpectOutputs(call(Sums({2}, {7, -8}), {2, 1}, F({1}, {-1})),
                {Sums({2, 1}, {7, -8}), kLow, kHigh});
  call(Bytes({2}, {1, 2}), {3}, kLow).ExpectError("");
  call(Bytes({2}, {1, 2}), {2}, F({2}, {1, 2})).ExpectError("vector of 1 element");
}

// TensorFlow has no kernels for these two ops. They are compared with the ops that do the same.
TEST(QuantizedOpsWithoutReference, AgreeWithTheirRelatives) {
  const Tensor x = Bytes({2, 2}, {0, 100, 200, 255});
  // The range [-2, 6] has 255 steps: 0 is integer 64, and 6 is 255.
  ExpectOutputs({"QuantizedReluX", {x, F({}, {6}), F({}, {-2}), F({}, {6})}},
                {Bytes({2, 2}, {64, 100, 200, 255}), F({}, {-2}), F({}, {6})});
  ExpectOutputs({"QuantizedReluX", {x, F({}, {2}), F({}, {-2}), F({}, {6})}},
                {Bytes({2, 2}, {64, 100, 128, 128}), F({}, {-2}), F({}, {6})});
  OpCall{"QuantizedReluX", {x, F({}, {-1}), F({}, {-2}), F({}, {6})}}.ExpectError("max_value");
  using Tensors = std::vector<Tensor>;
  const auto concat = [&](int axis) {
    return OpCall{"QuantizedConcatV2",
                  {Tensors{Bytes({1, 2}, {7, 8}), Bytes({1, 1}, {9})}, I({}, {axis}),
                   Tensors{kLow, kLow}, Tensors{kHigh, kHigh}}};
  };
  for (int axis : {1, -1}) ExpectOutputs(concat(axis), {Bytes({1, 3}, {7, 8, 9}), kLow, kHigh});
  concat(-3).ExpectError("in the range [0, 2)");
  concat(0).ExpectError("should match");
}

const Tensor kSumsOfChannels =
    Sums({1, 2, 3, 2}, {-70000000, -3, 0, 5, 400000000, 90000000, INT32_MIN, INT32_MAX, 1234567,
                        -7654321, 2000000000, -2000000000});
const Tensor kChannelMin = F({2}, {-2, -3}), kChannelMax = F({2}, {1, 5});

TEST(RequantizePerChannel, EachChannelHasItsRange) {
  const auto call = [](DType type, float min, float max) {
    return OpCall{"RequantizePerChannel",
                  {kSumsOfChannels, kChannelMin, kChannelMax, F({}, {min}), F({}, {max})},
                  {{"out_type", type}}};
  };
  const Shape shape({1, 2, 3, 2});
  ExpectOutputs(call(DType::kQuint8, -1, 1.5),
                {Bytes(shape, {0, 0, 0, 0, 63, 36, 0, 255, 0, 0, 255, 0}), kLow, F({}, {1.5})});
  ExpectOutputs(call(DType::kQint8, -1, 1.5),
                {IntegersOf<qint8>(shape, {-6, 0, 0, 0, 32, 18, -128, 127, 0, -2, 127, -128}), kLow,
                 F({}, {1.5})});
  ExpectOutputs(call(DType::kQint8, -0.01f, 0.02f),
                {IntegersOf<qint8>(shape, {-128, 0, 0, 0, 127, 127, -128, 127, 7, -113, 127, -128}),
                 F({}, {-0.01f}), F({}, {0.02f})});
  ExpectOutputs({"RequantizePerChannel",
                 {kSumsOfChannels, F({1}, {-2}), F({1}, {1}), kLow, F({}, {1})},
                 {{"out_type", DType::kQint8}}},
                {IntegersOf<qint8>(shape, {-8, 0, 0, 0, 47, 11, -128, 127, 0, -1, 127, -128}), kLow,
                 F({}, {1})});
  call(DType::kQint8, 0, 1).ExpectError("must be negative if out_type is qint8");
  call(DType::kQuint8, 0, 0).ExpectError("must not be [0, 0]");
}

TEST(RequantizationRangePerChannel, CoversAllChannels) {
  const auto call = [](const Tensor& x, float clip) {
    return OpCall{
        "RequantizationRangePerChannel", {x, kChannelMin, kChannelMax}, {{"clip_value_max", clip}}};
  };
  const Tensor above = Sums({1, 1, 3, 2}, {70000000, 3, 0, 5, 400000000, 90000000});
  ExpectOutputs(call(above, 1e9), {F({}, {0}), F({}, {0.37252903f})});
  // TensorFlow's result is wrong if the lowest integer occurs, because it has no magnitude.
  ExpectOutputs(call(kSumsOfChannels, 6), {F({}, {-5}), F({}, {5})});
  ExpectOutputs(call(kSumsOfChannels, 0.5), {F({}, {-0.5}), F({}, {0.5})});
  call(Sums({1, 1, 1, 1}, {1}), 1).ExpectError("each of the 1 channels");
}

}  // namespace
}  // namespace penstock
