// SPDX-License-Identifier: Apache-2.0
//
// Conv2D and its two gradients, over NHWC images with HWIO filters.
#include "core/op/flops.h"
#include "kernels/nn/conv_kernels.h"

namespace penstock {
namespace {

const DTypes& ConvTypes() {
  static const DTypes& types =
      *new DTypes{DType::kHalf, DType::kBfloat16, DType::kFloat, DType::kDouble, DType::kInt32};
  return types;
}

}  // namespace

OP(Conv2D) {
  return {
      .doc =
          "Convolves images with a filter: each output pixel is the sum of the products of "
          "a window of the image with the filter. If the filter has fewer input channels than the "
          "images, the channels are divided into groups, which are convolved separately.",
      .inputs = {{"input", "T"}, {"filter", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", ConvTypes()}},
      .attrs = ConvAttrs(ConvOf::kImages),
      .shape = ConvShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {ImageGradientNode(g, ConvOf::kImages, g.x(0), g.x(1), g.dy()),
                FilterGradientNode(g, ConvOf::kImages, g.x(0), g.x(1), g.dy())};
      },
      .examples = {{.inputs = {{{{2, 4, 3, 2}}}, {{{3, 2, 2, 3}}}},
                    .attrs = ConvExampleAttrs(ConvOf::kImages, "SAME", 2)},
                   {.inputs = {{{{1, 4, 3, 1}}}, {{{2, 2, 1, 2}}}},
                    .attrs = ConvExampleAttrs(ConvOf::kImages, "VALID", 1)},
                   {.inputs = {{{{1, 3, 3, 4}}}, {{{2, 2, 2, 4}}}},
                    .attrs = ConvExampleAttrs(ConvOf::kImages, "SAME", 1)}},
      .flops = ConvolutionFlops,
  };
}
KERNEL(Conv2D, ConvForwardKernel, half, bfloat16, float, double, int32_t);

OP(Conv2DBackpropInput) {
  return {
      .doc = "The gradient of Conv2D for its images, whose shape is `input_sizes`.",
      .inputs = {{"input_sizes", "int32"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", ConvTypes()}},
      .attrs = ConvAttrs(ConvOf::kImages),
      .shape = [](ShapeScope& s) { return ConvShapeFromSizes(s, 0); },
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), FilterGradientNode(g, ConvOf::kImages, g.dy(), g.x(1), g.x(2)),
                ConvNode(g, ConvOf::kImages, g.dy(), g.x(1))};
      },
      .examples = {{.inputs = {{{{4}, {2, 4, 3, 2}}}, {{{3, 2, 2, 3}}}, {{{2, 2, 3, 3}}}},
                    .attrs = ConvExampleAttrs(ConvOf::kImages, "SAME", 2)}},
      .flops = ConvolutionInputGradientFlops,
  };
}
KERNEL(Conv2DBackpropInput, ConvBackpropInputKernel, half, bfloat16, float, double, int32_t);

OP(Conv2DBackpropFilter) {
  return {
      .doc = "The gradient of Conv2D for its filter, whose shape is `filter_sizes`.",
      .inputs = {{"input", "T"}, {"filter_sizes", "int32"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", ConvTypes()}},
      .attrs = ConvAttrs(ConvOf::kImages),
      .shape = [](ShapeScope& s) { return ConvShapeFromSizes(s, 1); },
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {ImageGradientNode(g, ConvOf::kImages, g.x(0), g.dy(), g.x(2)), Gradient(),
                ConvNode(g, ConvOf::kImages, g.x(0), g.dy())};
      },
      .examples = {{.inputs = {{{{2, 4, 3, 2}}}, {{{4}, {3, 2, 2, 3}}}, {{{2, 2, 3, 3}}}},
                    .attrs = ConvExampleAttrs(ConvOf::kImages, "SAME", 2)}},
      .flops = ConvolutionFilterGradientFlops,
  };
}
KERNEL(Conv2DBackpropFilter, ConvBackpropFilterKernel, half, bfloat16, float, double, int32_t);

}  // namespace penstock
