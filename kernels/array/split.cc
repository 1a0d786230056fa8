// SPDX-License-Identifier: Apache-2.0
//
// Split: cuts a tensor along a dimension into equal slices; SplitV: into slices of given sizes.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/share.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

StatusOr<int> SplitAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(-rank, " <= split_dim < ", rank, " is expected, got ", axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Writes `sizes[i]` rows of dimension `axis` to output i, one slice after the other. REQUIRES: the
// sizes add up to that dimension.
Status SplitToOutputs(KernelContext& ctx, const Tensor& value, int axis,
                      absl::Span<const int64_t> sizes) {
  const Dims strides = DenseStrides(value.shape().dims());
  const int64_t rows =
      value.num_elements() == 0 ? 0 : value.num_elements() / (strides[axis] * value.dim(axis));
  const int64_t whole = strides[axis] * value.dim(axis);
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t offset = begin * strides[axis], row = sizes[i] * strides[axis];
    if (axis == 0 && IsAlignedAt(value, offset)) {
      ctx.SetOutput(i, value.Slice(begin, begin + sizes[i]));
    } else {
      Shape shape = value.shape();
      shape.set_dim(axis, sizes[i]);
      Tensor* part;
      RETURN_IF_ERROR(ctx.Allocate(i, shape, &part));
      StridedCopy copy;
      copy.Add(rows, whole, row);
      copy.Add(row, 1, 1);
      CopyStrided(value.dtype(), copy, ElementAt(value.raw_data(), value.dtype(), offset),
                  part->mutable_raw_data(), ctx.threads());
    }
    begin += sizes[i];
  }
  return OkStatus();
}

class SplitKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t wanted, IntScalar(ctx.input(0), "split_dim"));
    const Tensor value = ctx.TakeInput(1);
    ASSIGN_OR_RETURN(const int axis, SplitAxis(wanted, value.rank()));
    const int parts = ctx.num_outputs();
    if (parts == 1) {
      ctx.SetOutput(0, value);
      return OkStatus();
    }
    if (value.dim(axis) % parts != 0) {
      return InvalidArgument("Number of ways to split should evenly divide the split dimension, ",
                             "but got split_dim ", axis, " (size = ", value.dim(axis),
                             ") and num_split ", parts);
    }
    return SplitToOutputs(ctx, value, axis, std::vector<int64_t>(parts, value.dim(axis) / parts));
  }
};

// Replaces the one -1 in `sizes`, if any, by the remainder of `dim`. InvalidArgument if several are
// -1, one is less, or the sum is not `dim`. If dim < 0, it is unknown and the sum is not checked.
Status FillInSizes(int64_t dim, Dims* sizes) {
  int missing = -1;
  int64_t sum = 0;
  for (int i = 0; i < static_cast<int>(sizes->size()); ++i) {
    const int64_t size = (*sizes)[i];
    if (size < -1 || (size == -1 && missing >= 0)) {
      return InvalidArgument("size_splits must be sizes, at most one of them -1; element ", i,
                             " is ", size);
    }
    if (size == -1) {
      missing = i;
    } else {
      sum = AddDims(sum, size);
      if (sum < 0) return InvalidArgument("size_splits add up to more than an int64 can hold");
    }
  }
  if (dim < 0) return OkStatus();
  if (missing < 0 ? sum != dim : sum > dim) {
    return InvalidArgument(
        "Determined shape must either match input shape along split_dim exactly ",
        "if fully specified, or be less than the size of the input along ",
        "split_dim if not fully specified.  Got: ", sum, ", expected ", dim);
  }
  if (missing >= 0) (*sizes)[missing] = dim - sum;
  return OkStatus();
}

class SplitVKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const int64_t wanted, IntScalar(ctx.input(2), "split_dim"));
    ASSIGN_OR_RETURN(Dims sizes, IntVector(ctx.input(1), "size_splits", ctx.num_outputs()));
    const Tensor value = ctx.TakeInput(0);
    ASSIGN_OR_RETURN(const int axis, SplitAxis(wanted, value.rank()));
    RETURN_IF_ERROR(FillInSizes(value.dim(axis), &sizes));
    if (sizes.size() == 1) {
      ctx.SetOutput(0, value);
      return OkStatus();
    }
    return SplitToOutputs(ctx, value, axis, sizes);
  }
};

// Sets each output's shape to that of `value` with an unknown size along the axis; if the axis is
// unknown, all sizes are unknown.
Status SetUnknownParts(ShapeScope& s, const PartialShape& value, int axis) {
  PartialShape part = value;
  if (value.known_rank() && axis < 0) part = PartialShape::UnknownOfRank(value.rank());
  if (value.known_rank() && axis >= 0) part.set_dim(axis, PartialShape::kUnknown);
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, part);
  return OkStatus();
}

Status SplitShape(ShapeScope& s) {
  const PartialShape& value = s.input(1);
  std::vector<int64_t> wanted;
  if (!value.known_rank() || !s.ConstantInts(0, &wanted) || wanted.size() != 1) {
    return SetUnknownParts(s, value, -1);
  }
  ASSIGN_OR_RETURN(const int axis, SplitAxis(wanted[0], value.rank()));
  const int64_t dim = value.dim(axis), parts = s.num_outputs();
  if (dim < 0) return SetUnknownParts(s, value, axis);
  if (dim % parts != 0) {
    return InvalidArgument("dimension ", axis, " of size ", dim, " cannot be split into ", parts,
                           " equal parts");
  }
  PartialShape part = value;
  part.set_dim(axis, dim / parts);
  for (int i = 0; i < parts; ++i) s.set_output(i, part);
  return OkStatus();
}

Status SplitVShape(ShapeScope& s) {
  const PartialShape& value = s.input(0);
  std::vector<int64_t> wanted, constant_sizes;
  if (!value.known_rank() || !s.ConstantInts(2, &wanted) || wanted.size() != 1) {
    return SetUnknownParts(s, value, -1);
  }
  ASSIGN_OR_RETURN(const int axis, SplitAxis(wanted[0], value.rank()));
  if (!s.ConstantInts(1, &constant_sizes)) return SetUnknownParts(s, value, axis);
  if (static_cast<int>(constant_sizes.size()) != s.num_outputs()) {
    return InvalidArgument("size_splits has ", constant_sizes.size(), " elements for ",
                           s.num_outputs(), " outputs");
  }
  Dims sizes(constant_sizes.begin(), constant_sizes.end());
  RETURN_IF_ERROR(FillInSizes(value.dim(axis), &sizes));
  PartialShape part = value;
  for (int i = 0; i < s.num_outputs(); ++i) {
    part.set_dim(axis, sizes[i]);  // a -1 that could not be replaced: unknown
    s.set_output(i, part);
  }
  return OkStatus();
}

Outputs OutputGradients(const GradientScope& g) {
  Outputs dy;
  for (int i = 0; i < g.num_outputs(); ++i) dy.push_back(g.dy(i));
  return dy;
}

// Calls ConcatV2, which needs at least two tensors; returns a single tensor unchanged.
Output ConcatGradients(const GradientScope& g, Output axis) {
  const Outputs dy = OutputGradients(g);
  return dy.size() == 1 ? dy[0] : ConcatV2(dy, axis);
}

OP(Split) {
  return {
      .doc = "Splits `value` into num_split equal parts along dimension split_dim.",
      .inputs = {{"split_dim", "int32"}, {"value", "T"}},
      .outputs = {{"output", Repeat("num_split", "T")}},
      .types = {{"T", kAnyType}},
      .attrs = {{"num_split", Ints{.min = 1}}},
      .shape = SplitShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Gradient(), ConcatGradients(g, g.x(0))};
      },
      .examples = {{.inputs = {{{.values = {1}}}, {{{2, 4}}}}, .attrs = {{"num_split", 2}}}},
  };
}

OP(SplitV) {
  return {
      .doc =
          "Splits `value` along dimension split_dim into parts of the sizes size_splits. One size "
          "may be -1: this part is the rest.",
      .inputs = {{"value", "T"}, {"size_splits", "Tlen"}, {"split_dim", "int32"}},
      .outputs = {{"output", Repeat("num_split", "T")}},
      .types = {{"T", kAnyType}, {"Tlen", kIndex, DType::kInt64}},
      .attrs = {{"num_split", Ints{.min = 1}}},
      .shape = SplitVShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {ConcatGradients(g, g.x(2)), Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 5}}}, {{{2}, {2, -1}}}, {{.values = {1}}}},
                    .attrs = {{"num_split", 2}}}},
  };
}

KERNEL_ANY_TYPE(Split, SplitKernel);
KERNEL_ANY_TYPE(SplitV, SplitVKernel);

}  // namespace
}  // namespace penstock
