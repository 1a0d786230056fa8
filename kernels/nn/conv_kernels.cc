// SPDX-License-Identifier: Apache-2.0
#include "kernels/nn/conv_kernels.h"

namespace penstock {

Status ConvShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const WindowAttrs window, WindowAttrs::From(s.attrs()));
  const int rank = window.rank;
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, rank));
  ASSIGN_OR_RETURN(PartialShape filter, s.WithRank(1, rank));
  if (!image.known_rank()) image = PartialShape::UnknownOfRank(rank);
  if (!filter.known_rank()) filter = PartialShape::UnknownOfRank(rank);
  const int64_t channels = image.dim(rank - 1), wanted = filter.dim(rank - 2);
  const bool groups = rank == 4 && wanted > 0 && channels > 0;
  if (channels >= 0 && wanted >= 0 && (groups ? channels % wanted != 0 : channels != wanted)) {
    return InvalidArgument("input depth must ", rank == 4 ? "be evenly divisible by" : "equal",
                           " filter depth: ", channels, " vs ", wanted, ", the filter has shape ",
                           filter.ToString());
  }
  PartialShape out = PartialShape::UnknownOfRank(rank);
  out.set_dim(0, image.dim(0));
  out.set_dim(rank - 1, filter.dim(rank - 1));
  for (int dim = 1; dim < rank - 1; ++dim) {
    ASSIGN_OR_RETURN(const int64_t size,
                     WindowOutput(window, dim, image.dim(dim), filter.dim(dim - 1)));
    out.set_dim(dim, size);
  }
  s.set_output(0, out);
  return OkStatus();
}

Status ConvShapeFromSizes(ShapeScope& s, int input) {
  const auto format = s.attrs().find("data_format");
  const size_t rank = format == s.attrs().end() ? 5 : s.attr<std::string>("data_format").size();
  std::vector<int64_t> sizes;
  PartialShape out = PartialShape::UnknownOfRank(static_cast<int>(rank));
  if (s.ConstantInts(input, &sizes) && sizes.size() == rank) {
    ASSIGN_OR_RETURN(out, PartialShape::Make(sizes));
  }
  s.set_output(0, out);
  return OkStatus();
}

std::vector<AttrDef> ConvAttrs(ConvOf what) {
  if (what == ConvOf::kVolumes) {
    return {{"strides", IntList{5}},
            {"padding", OneOf{{"SAME", "VALID"}}},
            {"data_format", OneOf{{"NDHWC", "NCDHW"}}, "NDHWC"},
            {"dilations", std::vector<int64_t>{1, 1, 1, 1, 1}}};
  }
  return {{"strides", IntList{}},
          {"use_cudnn_on_gpu", true},
          {"padding", OneOf{{"SAME", "VALID", "EXPLICIT"}}},
          {"explicit_paddings", IntList{}, EmptyList{}},
          {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"},
          {"dilations", std::vector<int64_t>{1, 1, 1, 1}}};
}

Attrs ConvAttributes(const GradientScope& g) {
  Attrs attrs;
  for (const char* name : {"strides", "padding", "explicit_paddings", "data_format", "dilations",
                           "use_cudnn_on_gpu"}) {
    const auto it = g.attrs().find(name);
    if (it != g.attrs().end()) attrs[name] = it->second;
  }
  return attrs;
}

Output ConvNode(const GradientScope& g, ConvOf what, Output image, Output filter) {
  return Call(what == ConvOf::kVolumes ? "Conv3D" : "Conv2D", {image, filter}, ConvAttributes(g));
}
Output ImageGradientNode(const GradientScope& g, ConvOf what, Output image, Output filter,
                         Output dy) {
  return Call(what == ConvOf::kVolumes ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput",
              {ShapeOf(image), filter, dy}, ConvAttributes(g));
}
Output FilterGradientNode(const GradientScope& g, ConvOf what, Output image, Output filter,
                          Output dy) {
  return Call(what == ConvOf::kVolumes ? "Conv3DBackpropFilterV2" : "Conv2DBackpropFilter",
              {image, ShapeOf(filter), dy}, ConvAttributes(g));
}

Attrs ConvExampleAttrs(ConvOf what, const char* padding, int64_t stride) {
  std::vector<int64_t> strides = {1, stride, 1, 1};
  if (what == ConvOf::kVolumes) strides.push_back(1);
  return {{"strides", strides}, {"padding", padding}};
}

namespace {

double FlopsOfConvolution(const FlopsScope& scope, const PartialShape& filter) {
  const PartialShape inputs[] = {PartialShape(), filter};
  return ConvolutionFlops(
      {.attrs = scope.attrs, .inputs = inputs, .outputs = {&scope.inputs[2], 1}});
}

}  // namespace

double ConvolutionInputGradientFlops(const FlopsScope& scope) {
  return FlopsOfConvolution(scope, scope.inputs[1]);
}

double ConvolutionFilterGradientFlops(const FlopsScope& scope) {
  return FlopsOfConvolution(scope, scope.outputs[0]);
}

}  // namespace penstock
