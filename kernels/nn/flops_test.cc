// SPDX-License-Identifier: Apache-2.0
//
// Tests the estimated numbers of operations of convolutions and their gradients: they equal those
// of the matrix products that the kernels compute.
#include "core/op/flops.h"

#include <vector>

#include "core/op/registry.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

double FlopsOf(const char* name, std::vector<PartialShape> inputs, PartialShape output) {
  const OpDef* const op = Registry::Global().FindOp(name);
  EXPECT_TRUE(op != nullptr && op->flops != nullptr) << name;
  const Attrs attrs;
  const std::vector<PartialShape> outputs = {std::move(output)};
  return op == nullptr || op->flops == nullptr
             ? 0
             : op->flops({.attrs = attrs, .inputs = inputs, .outputs = outputs});
}

// 8 images of 16 x 16 x 3, a filter of 5 x 5 for 32 channels, and a stride of 2.
TEST(ConvolutionFlopsTest, GradientsMultiplyAsOftenAsTheConvolution) {
  const PartialShape image = {8, 16, 16, 3}, filter = {5, 5, 3, 32}, result = {8, 8, 8, 32};
  const PartialShape sizes = {4};
  constexpr double kFlops = 2.0 * 8 * 8 * 8 * 32 * 5 * 5 * 3;
  EXPECT_EQ(FlopsOf("Conv2D", {image, filter}, result), kFlops);
  EXPECT_EQ(FlopsOf("Conv2DBackpropInput", {sizes, filter, result}, image), kFlops);
  EXPECT_EQ(FlopsOf("Conv2DBackpropFilter", {image, sizes, result}, filter), kFlops);
}

TEST(ConvolutionFlopsTest, Volumes) {
  const PartialShape volume = {2, 4, 8, 8, 3}, filter = {3, 3, 3, 3, 10}, result = {2, 2, 4, 4, 10};
  const PartialShape sizes = {5};
  constexpr double kFlops = 2.0 * 2 * 2 * 4 * 4 * 10 * 27 * 3;
  EXPECT_EQ(FlopsOf("Conv3D", {volume, filter}, result), kFlops);
  EXPECT_EQ(FlopsOf("Conv3DBackpropInput", {volume, filter, result}, volume), kFlops);
  EXPECT_EQ(FlopsOf("Conv3DBackpropInputV2", {sizes, filter, result}, volume), kFlops);
  EXPECT_EQ(FlopsOf("Conv3DBackpropFilter", {volume, filter, result}, filter), kFlops);
  EXPECT_EQ(FlopsOf("Conv3DBackpropFilterV2", {volume, sizes, result}, filter), kFlops);
}

// Each channel has a window of its own: channels are not multiplied with each other.
TEST(ConvolutionFlopsTest, DepthwiseConvolutions) {
  const PartialShape image = {4, 10, 10, 16}, filter = {3, 3, 16, 2}, result = {4, 10, 10, 32};
  const PartialShape sizes = {4};
  constexpr double kFlops = 2.0 * 4 * 10 * 10 * 32 * 9;
  EXPECT_EQ(FlopsOf("DepthwiseConv2dNative", {image, filter}, result), kFlops);
  EXPECT_EQ(FlopsOf("DepthwiseConv2dNativeBackpropInput", {sizes, filter, result}, image), kFlops);
  EXPECT_EQ(FlopsOf("DepthwiseConv2dNativeBackpropFilter", {image, sizes, result}, filter), kFlops);
}

TEST(ConvolutionFlopsTest, UnknownShapesCountAsUsual) {
  const PartialShape unknown;
  EXPECT_GT(FlopsOf("Conv2DBackpropFilter", {unknown, {4}, unknown}, unknown), 0);
  EXPECT_GT(FlopsOf("DepthwiseConv2dNative", {unknown, unknown}, unknown), 0);
}

}  // namespace
}  // namespace penstock
