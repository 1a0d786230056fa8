// SPDX-License-Identifier: Apache-2.0
//
// SpaceToDepth: moves blocks of an image into channels; DepthToSpace: the inverse.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// The indices of the dimensions of height, width and channels.
struct Layout {
  int height = 1, width = 2, channels = 3;
};

StatusOr<Layout> LayoutOf(const std::string& data_format) {
  if (data_format == "NHWC") return Layout{};
  if (data_format == "NCHW") return Layout{.height = 2, .width = 3, .channels = 1};
  return Unimplemented("data_format ", data_format, " is not supported; NHWC and NCHW are");
}

// Returns the dimensions of the result; sizes may be unknown. InvalidArgument if the rank is not 4,
// or if the divisor (the block, or its area) does not divide a dimension.
StatusOr<Dims> MovedDims(absl::Span<const int64_t> dims, const Layout& layout, int64_t block,
                         bool to_depth) {
  if (dims.size() != 4) {
    return InvalidArgument("Input rank should be: 4 instead of: ", dims.size());
  }
  Dims moved(dims.begin(), dims.end());
  const auto divide = [&](int axis, int64_t divisor) -> Status {
    if (moved[axis] < 0) return OkStatus();
    if (moved[axis] % divisor != 0) {
      return InvalidArgument("dimension ", axis, " of the input, ", moved[axis],
                             ", should be divisible by ", divisor);
    }
    moved[axis] /= divisor;
    return OkStatus();
  };
  ASSIGN_OR_RETURN(const int64_t area, CheckedProduct({block, block}));
  if (to_depth) {
    RETURN_IF_ERROR(divide(layout.height, block));
    RETURN_IF_ERROR(divide(layout.width, block));
    moved[layout.channels] = MultiplyDims(moved[layout.channels], area);
  } else {
    RETURN_IF_ERROR(divide(layout.channels, area));
    moved[layout.height] = MultiplyDims(moved[layout.height], block);
    moved[layout.width] = MultiplyDims(moved[layout.width], block);
  }
  return moved;
}

Status CheckBlock(int64_t block) {
  return block > 1 ? OkStatus() : InvalidArgument("Block size should be > 1, but was: ", block);
}

template <bool kToDepth>
class SpaceDepthKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string data_format;
    RETURN_IF_ERROR(node.Attr("data_format", &data_format));
    ASSIGN_OR_RETURN(layout_, LayoutOf(data_format));
    RETURN_IF_ERROR(node.Attr("block_size", &block_));
    return CheckBlock(block_);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const Dims dims, MovedDims(input.shape().dims(), layout_, block_, kToDepth));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const Shape& space = kToDepth ? input.shape() : shape;
    const Shape& depth = kToDepth ? shape : input.shape();
    const Dims s = DenseStrides(space.dims()), d = DenseStrides(depth.dims());
    const auto [h, w, c] = layout_;
    StridedCopy copy;
    const auto add = [&](int64_t count, int64_t space_step, int64_t depth_step) {
      copy.Add(count, kToDepth ? space_step : depth_step, kToDepth ? depth_step : space_step);
    };
    add(space.dim(0), s[0], d[0]);
    add(depth.dim(h), block_ * s[h], d[h]);
    add(depth.dim(w), block_ * s[w], d[w]);
    // A channel of depth has the index (row in block, column in block, channel of space),
    // row-major.
    add(block_, s[h], block_ * space.dim(c) * d[c]);
    add(block_, s[w], space.dim(c) * d[c]);
    add(space.dim(c), s[c], d[c]);
    CopyStrided(input.dtype(), copy, input.raw_data(), output->mutable_raw_data(), ctx.threads());
    return OkStatus();
  }

 private:
  Layout layout_;
  int64_t block_ = 0;
};

template <bool kToDepth>
Status SpaceDepthShape(ShapeScope& s) {
  const int64_t block = s.attr<int64_t>("block_size");
  RETURN_IF_ERROR(CheckBlock(block));
  ASSIGN_OR_RETURN(const Layout layout, LayoutOf(s.attr<std::string>("data_format")));
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRank(0, 4));
  ASSIGN_OR_RETURN(const Dims dims, MovedDims(input.dims(), layout, block, kToDepth));
  return SetOutput(s, 0, dims);
}

OpDef SpaceDepthOp(const char* doc, ShapeFn shape, const char* inverse,
                   std::vector<Example> examples) {
  return {
      .doc = doc,
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"block_size", Ints{.min = 2}},
                {"data_format", OneOf{{"NHWC", "NCHW", "NCHW_VECT_C"}}, "NHWC"}},
      .shape = std::move(shape),
      .gradient = [inverse](const GradientScope& g) -> std::vector<Gradient> {
        return {Call(inverse, {g.dy()},
                     {{"block_size", g.attr<int64_t>("block_size")},
                      {"data_format", g.attr<std::string>("data_format")}})};
      },
      .examples = std::move(examples),
  };
}

OP(SpaceToDepth) {
  return SpaceDepthOp(
      "Moves each block of pixels of an image into the channels of one pixel.",
      SpaceDepthShape<true>, "DepthToSpace",
      {{.inputs = {{{{1, 4, 2, 3}}}}, .attrs = {{"block_size", 2}}},
       {.inputs = {{{{1, 3, 4, 2}}}}, .attrs = {{"block_size", 2}, {"data_format", "NCHW"}}}});
}

OP(DepthToSpace) {
  return SpaceDepthOp(
      "Expands the channels of each pixel into a block of pixels of a larger image.",
      SpaceDepthShape<false>, "SpaceToDepth",
      {{.inputs = {{{{1, 2, 1, 8}}}}, .attrs = {{"block_size", 2}}},
       {.inputs = {{{{1, 8, 2, 1}}}}, .attrs = {{"block_size", 2}, {"data_format", "NCHW"}}}});
}
KERNEL_ANY_TYPE(SpaceToDepth, SpaceDepthKernel<true>);
KERNEL_ANY_TYPE(DepthToSpace, SpaceDepthKernel<false>);

}  // namespace
}  // namespace penstock
