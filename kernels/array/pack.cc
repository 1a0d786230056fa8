// SPDX-License-Identifier: Apache-2.0
//
// Pack: stacks tensors of one shape along a new dimension; Unpack: the inverse.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/share.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

StatusOr<int> PackAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis = ", axis, " not in [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The numbers of elements before and after the new dimension.
struct SizesAroundAxis {
  int64_t outer = 1, inner = 1;
};
SizesAroundAxis SizesAround(const Shape& shape, int axis) {
  SizesAroundAxis sides;
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? sides.outer : sides.inner) *= shape.dim(i);
  return sides;
}

class PackKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("axis", &axis_); }
  Status Compute(KernelContext& ctx) override {
    const Shape each = ctx.input(0).shape();
    ASSIGN_OR_RETURN(const int axis, PackAxis(axis_, each.rank() + 1));
    const int n = ctx.num_inputs();
    for (int i = 1; i < n; ++i) {
      if (ctx.input(i).shape() == each) continue;
      return InvalidArgument("Shapes of all inputs must match: values[0].shape = ", each.ToString(),
                             " != values[", i, "].shape = ", ctx.input(i).shape().ToString());
    }
    Dims dims(each.dims().begin(), each.dims().end());
    dims.insert(dims.begin() + axis, n);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (n == 1) {
      ctx.SetOutput(0, ctx.TakeInput(0).Reshaped(shape));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const SizesAroundAxis sides = SizesAround(each, axis);
    StridedCopy copy;
    copy.Add(sides.outer, sides.inner, sides.inner * n);
    copy.Add(sides.inner, 1, 1);
    for (int i = 0; i < n; ++i) {
      CopyStrided(output->dtype(), copy, ctx.input(i).raw_data(),
                  ElementAt(output->mutable_raw_data(), output->dtype(), i * sides.inner),
                  ctx.threads());
    }
    return OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

Status PackShape(ShapeScope& s) {
  PartialShape each;
  for (int i = 0; i < s.num_inputs(); ++i) {
    ASSIGN_OR_RETURN(each, each.Merge(s.input(i)));
  }
  if (!each.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const int axis, PackAxis(s.attr<int64_t>("axis"), each.rank() + 1));
  Dims dims(each.dims().begin(), each.dims().end());
  dims.insert(dims.begin() + axis, s.num_inputs());
  return SetOutput(s, 0, dims);
}

std::vector<Gradient> PackGradient(const GradientScope& g) {
  const Outputs parts =
      CallN("Unpack", {g.dy()}, {{"num", g.num_inputs()}, {"axis", g.attr<int64_t>("axis")}});
  return {parts.begin(), parts.begin() + g.num_inputs()};
}

class UnpackKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("axis", &axis_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor value = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(const int axis, PackAxis(axis_, value.rank()));
    const int n = ctx.num_outputs();
    if (value.dim(axis) != n) {
      return InvalidArgument("Input shape axis ", axis, " must equal ", n, ", got shape ",
                             value.shape().ToString());
    }
    Shape each = value.shape();
    each.RemoveDim(axis);
    const SizesAroundAxis sides = SizesAround(each, axis);
    StridedCopy copy;
    copy.Add(sides.outer, sides.inner * n, sides.inner);
    copy.Add(sides.inner, 1, 1);
    for (int i = 0; i < n; ++i) {
      const int64_t offset = i * sides.inner;
      if (axis == 0 && IsAlignedAt(value, offset)) {
        ctx.SetOutput(i, value.Slice(i, i + 1).Reshaped(each));
        continue;
      }
      Tensor* part;
      RETURN_IF_ERROR(ctx.Allocate(i, each, &part));
      CopyStrided(value.dtype(), copy, ElementAt(value.raw_data(), value.dtype(), offset),
                  part->mutable_raw_data(), ctx.threads());
    }
    return OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

Status UnpackShape(ShapeScope& s) {
  const PartialShape& value = s.input(0);
  if (!value.known_rank()) return OkStatus();
  ASSIGN_OR_RETURN(const int axis, PackAxis(s.attr<int64_t>("axis"), value.rank()));
  if (value.dim(axis) >= 0 && value.dim(axis) != s.num_outputs()) {
    return InvalidArgument("dimension ", axis, " of the input is ", value.dim(axis), ", num is ",
                           s.num_outputs());
  }
  Dims dims(value.dims().begin(), value.dims().end());
  dims.erase(dims.begin() + axis);
  for (int i = 0; i < s.num_outputs(); ++i) RETURN_IF_ERROR(SetOutput(s, i, dims));
  return OkStatus();
}

std::vector<Gradient> UnpackGradient(const GradientScope& g) {
  if (g.num_outputs() == 0) return {Gradient(ZerosLike(g.x()))};
  Outputs dy;
  for (int i = 0; i < g.num_outputs(); ++i) dy.push_back(g.dy(i));
  return {Pack(dy, g.attr<int64_t>("axis"))};
}

OP(Pack) {
  return {
      .doc = "Stacks N tensors of equal shapes along a new dimension `axis`.",
      .inputs = {{"values", Repeat("N", "T")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"N", Ints{.min = 1}}, {"axis", 0}},
      .shape = PackShape,
      .gradient = PackGradient,
      .examples = {{.inputs = {{{{2, 3}}, {{2, 3}}}}},
                   {.inputs = {{{{2, 3}}, {{2, 3}}}}, .attrs = {{"axis", -1}}}},
      .shape_op = ShapeOp::kPack,
  };
}

OP(Unpack) {
  return {
      .doc =
          "Splits a tensor into its `num` slices along dimension `axis`, and removes that "
          "dimension.",
      .inputs = {{"value", "T"}},
      .outputs = {{"output", Repeat("num", "T")}},
      .types = {{"T", kAnyType}},
      .attrs = {{"num", Ints{.min = 0}}, {"axis", 0}},
      .shape = UnpackShape,
      .gradient = UnpackGradient,
      .examples = {{.inputs = {{{{3, 2}}}}, .attrs = {{"num", 3}}},
                   {.inputs = {{{{3, 2}}}}, .attrs = {{"num", 2}, {"axis", 1}}}},
  };
}

KERNEL_ANY_TYPE(Pack, PackKernel);
KERNEL_ANY_TYPE(Unpack, UnpackKernel);

}  // namespace
}  // namespace penstock
