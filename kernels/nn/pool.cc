// SPDX-License-Identifier: Apache-2.0
#include "kernels/nn/pool.h"

#include <utility>

namespace penstock {
namespace {

Status ReadSizes(const Tensor& input, const char* what, std::vector<int64_t>* values) {
  if (input.dtype() != DType::kInt32 || input.rank() != 1) {
    return InvalidArgument(what, " must be a vector of int32, is ", input.ToString());
  }
  const auto numbers = input.flat<int32_t>();
  values->assign(numbers.begin(), numbers.end());
  return CheckSpatial(what, *values);
}

}  // namespace

Status PoolKernel::Init(const KernelInit& node) {
  from_inputs_ = node.attrs.count("ksize") == 0;  // V2: the sizes are inputs
  ASSIGN_OR_RETURN(window_, WindowAttrs::From(node.attrs, !from_inputs_));
  if (from_inputs_) return OkStatus();
  RETURN_IF_ERROR(node.Attr("ksize", &sizes_));
  return CheckSpatial("ksize", sizes_, window_.rank);
}

StatusOr<PoolGeometry> PoolKernel::Geometry(const KernelContext& ctx, const Shape& image,
                                            int sizes_input) const {
  if (image.rank() != window_.rank) {
    return InvalidArgument("input must be a batch of images with ", window_.rank,
                           " dimensions, channels last, has shape ", image.ToString());
  }
  std::vector<int64_t> sizes = sizes_;
  WindowAttrs window = window_;
  if (from_inputs_) {
    RETURN_IF_ERROR(ReadSizes(ctx.input(sizes_input), "ksize", &sizes));
    RETURN_IF_ERROR(ReadSizes(ctx.input(sizes_input + 1), "strides", &window.strides));
  }
  const int rank = image.rank();
  PoolGeometry g{.batch = image.dim(0), .channels = image.dim(rank - 1), .volumes = rank == 5};
  Window* windows[] = {&g.d, &g.h, &g.w};
  for (int dim = 1; dim < rank - 1; ++dim) {
    ASSIGN_OR_RETURN(*windows[dim + 4 - rank], window.MakeWindow(dim, image.dim(dim), sizes[dim]));
  }
  const int64_t out[] = {g.batch, g.d.out, g.h.out, g.w.out, g.channels};
  RETURN_IF_ERROR(CheckedProduct(out).status());
  return g;
}

Status PoolKernel::ExpectShape(const char* what, const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return OkStatus();
  return InvalidArgument(what, " must have shape ", shape.ToString(), ", has ",
                         tensor.shape().ToString());
}

Status PoolShape(ShapeScope& s) {
  const bool v2 = s.attrs().count("ksize") == 0;
  ASSIGN_OR_RETURN(WindowAttrs window, WindowAttrs::From(s.attrs(), !v2));
  const int rank = window.rank;
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, rank));
  std::vector<int64_t> sizes;
  PartialShape out = PartialShape::UnknownOfRank(rank);
  if (!image.known_rank()) image = PartialShape::UnknownOfRank(rank);
  out.set_dim(0, image.dim(0));
  out.set_dim(rank - 1, image.dim(rank - 1));
  if (v2) {
    if (!s.ConstantInts(1, &sizes) || !s.ConstantInts(2, &window.strides)) {
      s.set_output(0, out);
      return OkStatus();
    }
    RETURN_IF_ERROR(CheckSpatial("strides", window.strides));
  } else {
    sizes = s.attr<std::vector<int64_t>>("ksize");
  }
  RETURN_IF_ERROR(CheckSpatial("ksize", sizes, rank));
  for (int dim = 1; dim < rank - 1; ++dim) {
    ASSIGN_OR_RETURN(const int64_t size, WindowOutput(window, dim, image.dim(dim), sizes[dim]));
    out.set_dim(dim, size);
  }
  s.set_output(0, out);
  return OkStatus();
}

StatusOr<int64_t> DepthWindow(const std::vector<int64_t>& sizes,
                              const std::vector<int64_t>& strides) {
  if (sizes.size() != 4 || sizes[3] <= 1)
    return 1;  // CheckSpatial returns the error for wrong sizes
  if (sizes[0] != 1 || sizes[1] != 1 || sizes[2] != 1) {
    return Unimplemented(
        "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
  }
  if (strides.size() != 4 || strides[3] != sizes[3]) {
    return Unimplemented(
        "Depthwise max pooling requires the depth window to equal the depth stride");
  }
  if (strides[0] != 1 || strides[1] != 1 || strides[2] != 1) {
    return Unimplemented("Depthwise max pooling requires strides of 1 over height and width");
  }
  return sizes[3];
}

StatusOr<int64_t> DepthWindowInput(const Tensor& sizes, const Tensor& strides) {
  std::vector<int64_t> read_sizes, read_strides;
  for (const auto& [input, values] : {std::pair(&sizes, &read_sizes), {&strides, &read_strides}}) {
    if (input->dtype() != DType::kInt32 || input->rank() != 1)
      return 1;  // ReadSizes returns the error
    const auto numbers = input->flat<int32_t>();
    values->assign(numbers.begin(), numbers.end());
  }
  return DepthWindow(read_sizes, read_strides);
}

StatusOr<Shape> DepthwiseShape(const Shape& image, int64_t depth) {
  if (image.rank() != 4) {
    return InvalidArgument("input must be a batch of images with 4 dimensions, channels last, has ",
                           "shape ", image.ToString());
  }
  if (image.dim(3) % depth != 0) {
    return Unimplemented(
        "Depthwise max pooling requires the depth window to evenly divide the input depth");
  }
  return Shape::Make({image.dim(0), image.dim(1), image.dim(2), image.dim(3) / depth});
}

Status MaxPoolShape(ShapeScope& s) {
  std::vector<int64_t> sizes, strides;
  if (s.attrs().count("ksize") > 0) {
    sizes = s.attr<std::vector<int64_t>>("ksize");
    strides = s.attr<std::vector<int64_t>>("strides");
  } else if (!s.ConstantInts(1, &sizes) || !s.ConstantInts(2, &strides)) {
    ASSIGN_OR_RETURN(const PartialShape image, s.WithRank(0, 4));
    PartialShape out = PartialShape::UnknownOfRank(4);
    if (image.known_rank()) out.set_dim(0, image.dim(0));
    s.set_output(0, out);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t depth, DepthWindow(sizes, strides));
  if (depth == 1) return PoolShape(s);
  RETURN_IF_ERROR(WindowAttrs::From(s.attrs(), /*need_strides=*/false).status());
  ASSIGN_OR_RETURN(PartialShape image, s.WithRank(0, 4));
  if (!image.known_rank()) image = PartialShape::UnknownOfRank(4);
  if (image.fully_known()) {
    ASSIGN_OR_RETURN(const Shape out, DepthwiseShape(image.ToShape(), depth));
    s.set_output(0, out);
    return OkStatus();
  }
  image.set_dim(3, PartialShape::kUnknown);
  s.set_output(0, image);
  return OkStatus();
}

Attrs WindowAttributes(const GradientScope& g) {
  Attrs attrs;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings", "data_format",
                           "include_batch_in_index"}) {
    const auto it = g.attrs().find(name);
    if (it != g.attrs().end()) attrs[name] = it->second;
  }
  return attrs;
}

std::vector<AttrDef> PoolAttrs(PoolPadding padding) {
  std::vector<AttrDef> attrs = {{"ksize", IntList{4}},
                                {"strides", IntList{4}},
                                {"padding", OneOf{{"SAME", "VALID"}}},
                                {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"}};
  if (padding == PoolPadding::kExplicitToo) {
    attrs[2] = {"padding", OneOf{{"SAME", "VALID", "EXPLICIT"}}};
    attrs.push_back({"explicit_paddings", IntList{}, EmptyList{}});
  }
  return attrs;
}
std::vector<AttrDef> Pool3DAttrs() {
  return {{"ksize", IntList{5}},
          {"strides", IntList{5}},
          {"padding", OneOf{{"SAME", "VALID"}}},
          {"data_format", OneOf{{"NDHWC", "NCDHW"}}, "NDHWC"}};
}
std::vector<AttrDef> PoolV2Attrs() {
  return {{"padding", OneOf{{"SAME", "VALID"}}}, {"data_format", OneOf{{"NHWC", "NCHW"}}, "NHWC"}};
}

Attrs ExampleWindow() {
  return {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
          {"strides", std::vector<int64_t>{1, 2, 1, 1}},
          {"padding", "SAME"}};
}
Attrs ExampleWindow3D() {
  return {{"ksize", std::vector<int64_t>{1, 2, 2, 1, 1}},
          {"strides", std::vector<int64_t>{1, 1, 2, 1, 1}},
          {"padding", "SAME"}};
}

}  // namespace penstock
