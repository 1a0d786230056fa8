// SPDX-License-Identifier: Apache-2.0
//
// Conv3D and its two gradients, over NDHWC volumes with DHWIO filters. The first version of each
// gradient op has the tensor whose gradient it computes as an input, and uses only its shape. The
// second version has that shape as an input.
#include "core/op/flops.h"
#include "kernels/nn/conv_kernels.h"

namespace penstock {
namespace {

constexpr ConvOf kVolumes = ConvOf::kVolumes;
const DTypes kOldTypes = {DType::kHalf, DType::kFloat, DType::kDouble};

std::vector<AttrDef> OldAttrs() {
  return {{"strides", IntList{5}},
          {"padding", OneOf{{"SAME", "VALID"}}},
          {"dilations", std::vector<int64_t>{1, 1, 1, 1, 1}}};
}
Attrs ExampleAttrs() { return ConvExampleAttrs(kVolumes, "SAME", 2); }

// The operands of the examples.
const ExampleTensor kImage = {{2, 4, 3, 2, 2}}, kFilter = {{3, 2, 1, 2, 3}},
                    kResult = {{2, 2, 3, 2, 3}};

std::vector<Gradient> BackpropInputGradient(const GradientScope& g) {
  return {Gradient(), FilterGradientNode(g, kVolumes, g.dy(), g.x(1), g.x(2)),
          ConvNode(g, kVolumes, g.dy(), g.x(1))};
}
std::vector<Gradient> BackpropFilterGradient(const GradientScope& g) {
  return {ImageGradientNode(g, kVolumes, g.x(0), g.dy(), g.x(2)), Gradient(),
          ConvNode(g, kVolumes, g.x(0), g.dy())};
}

}  // namespace

OP(Conv3D) {
  return {
      .doc =
          "Convolves volumes with a filter: each output element is the sum of the products "
          "of a window of the volume with the filter.",
      .inputs = {{"input", "T"}, {"filter", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = ConvAttrs(kVolumes),
      .shape = ConvShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {ImageGradientNode(g, kVolumes, g.x(0), g.x(1), g.dy()),
                FilterGradientNode(g, kVolumes, g.x(0), g.x(1), g.dy())};
      },
      .examples = {{.inputs = {{kImage}, {kFilter}}, .attrs = ExampleAttrs()}},
      .flops = ConvolutionFlops,
  };
}
KERNEL(Conv3D, ConvForwardKernel, half, bfloat16, float, double);

OP(Conv3DBackpropInput) {
  return {
      .doc = "The gradient of Conv3D for its volumes. Only the shape of `input` is used.",
      .inputs = {{"input", "T"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kOldTypes}},
      .attrs = OldAttrs(),
      .shape = SameShape,
      .gradient = BackpropInputGradient,
      .examples = {{.inputs = {{kImage}, {kFilter}, {kResult}}, .attrs = ExampleAttrs()}},
      .flops = ConvolutionInputGradientFlops,
  };
}
KERNEL(Conv3DBackpropInput, ConvBackpropInputKernel, half, float, double);

OP(Conv3DBackpropFilter) {
  return {
      .doc = "The gradient of Conv3D for its filter. Only the shape of `filter` is used.",
      .inputs = {{"input", "T"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kOldTypes}},
      .attrs = OldAttrs(),
      .shape =
          [](ShapeScope& s) {
            s.set_output(0, s.input(1));
            return OkStatus();
          },
      .gradient = BackpropFilterGradient,
      .examples = {{.inputs = {{kImage}, {kFilter}, {kResult}}, .attrs = ExampleAttrs()}},
      .flops = ConvolutionFilterGradientFlops,
  };
}
KERNEL(Conv3DBackpropFilter, ConvBackpropFilterKernel, half, float, double);

OP(Conv3DBackpropInputV2) {
  return {
      .doc = "The gradient of Conv3D for its volumes, whose shape is `input_sizes`.",
      .inputs = {{"input_sizes", "Tshape"}, {"filter", "T"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}, {"Tshape", kIndex, DType::kInt32}},
      .attrs = ConvAttrs(kVolumes),
      .shape = [](ShapeScope& s) { return ConvShapeFromSizes(s, 0); },
      .gradient = BackpropInputGradient,
      .examples = {{.inputs = {{{{5}, {2, 4, 3, 2, 2}}}, {kFilter}, {kResult}},
                    .attrs = ExampleAttrs()}},
      .flops = ConvolutionInputGradientFlops,
  };
}
KERNEL(Conv3DBackpropInputV2, ConvBackpropInputKernel, half, bfloat16, float, double);

OP(Conv3DBackpropFilterV2) {
  return {
      .doc = "The gradient of Conv3D for its filter, whose shape is `filter_sizes`.",
      .inputs = {{"input", "T"}, {"filter_sizes", "int32"}, {"out_backprop", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kFloating}},
      .attrs = ConvAttrs(kVolumes),
      .shape = [](ShapeScope& s) { return ConvShapeFromSizes(s, 1); },
      .gradient = BackpropFilterGradient,
      .examples = {{.inputs = {{kImage}, {{{5}, {3, 2, 1, 2, 3}}}, {kResult}},
                    .attrs = ExampleAttrs()}},
      .flops = ConvolutionFilterGradientFlops,
  };
}
KERNEL(Conv3DBackpropFilterV2, ConvBackpropFilterKernel, half, bfloat16, float, double);

}  // namespace penstock
