// SPDX-License-Identifier: Apache-2.0
//
// Concatenation along a dimension: Concat (axis first), ConcatV2 (axis last), and ConcatOffset,
// which their gradient uses.
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

StatusOr<int> ConcatAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [", -rank,
                           ", ", rank, "), but got ", axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Adds the size of `shape` along the axis to `total`, the shape of the result, which begins as the
// shape of input 0. InvalidArgument unless the rank and the other sizes are those of `first`.
Status AddToShape(const Shape& first, const Shape& shape, int index, int axis, Dims* total) {
  if (shape.rank() != first.rank()) {
    return InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ",
                           first.ToString(), " vs. shape[", index, "] = ", shape.ToString());
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis && shape.dim(i) != first.dim(i)) {
      return InvalidArgument("ConcatOp : Dimension ", i,
                             " in both shapes must be equal: shape[0] = ", first.ToString(),
                             " vs. shape[", index, "] = ", shape.ToString());
    }
  }
  if (index > 0) (*total)[axis] = AddDims((*total)[axis], shape.dim(axis));
  return OkStatus();
}

// Returns the product of dimension `axis` and all later dimensions.
int64_t RowElements(const Shape& shape, int axis) {
  int64_t elements = 1;
  for (int i = axis; i < shape.rank(); ++i) elements *= shape.dim(i);
  return elements;
}

template <bool kAxisLast>
class ConcatKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const int n = ctx.num_inputs() - 1;
    const int first = kAxisLast ? 0 : 1;
    ASSIGN_OR_RETURN(int64_t wanted, IntScalar(ctx.input(kAxisLast ? n : 0), "axis"));
    const Shape head = ctx.input(first).shape();
    ASSIGN_OR_RETURN(const int axis, ConcatAxis(wanted, head.rank()));
    Dims dims(head.dims().begin(), head.dims().end());
    int filled = 0, last_filled = first;  // inputs that contribute elements
    for (int i = 0; i < n; ++i) {
      const Tensor& value = ctx.input(first + i);
      RETURN_IF_ERROR(AddToShape(head, value.shape(), i, axis, &dims));
      if (value.num_elements() == 0) continue;
      ++filled;
      last_filled = first + i;
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (filled <= 1 && ctx.input(last_filled).shape() == shape) {
      ctx.SetOutput(0, ctx.TakeInput(last_filled));
      return OkStatus();
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    Join(ctx, first, n, axis, output);
    return OkStatus();
  }

 private:
  static void Join(KernelContext& ctx, int first, int n, int axis, Tensor* output) {
    const int64_t total_row = RowElements(output->shape(), axis);
    if (total_row == 0) return;
    const int64_t rows = output->num_elements() / total_row;
    int64_t offset = 0;
    for (int i = 0; i < n; ++i) {
      const Tensor& value = ctx.input(first + i);
      const int64_t row = RowElements(value.shape(), axis);
      StridedCopy copy;
      copy.Add(rows, row, total_row);
      copy.Add(row, 1, 1);
      CopyStrided(value.dtype(), copy, value.raw_data(),
                  ElementAt(output->mutable_raw_data(), value.dtype(), offset), ctx.threads());
      offset += row;
    }
  }
};

// Sets the output's shape as far as the inputs [first, first + n) and the axis determine it.
Status ConcatShape(ShapeScope& s, int axis_input, int first, int n) {
  int rank = -1;
  for (int i = first; i < first + n && rank < 0; ++i) rank = s.input(i).rank();
  if (rank < 0) return OkStatus();
  std::vector<int64_t> axis_value;
  if (!s.ConstantInts(axis_input, &axis_value) || axis_value.size() != 1) {
    for (int i = first; i < first + n; ++i) RETURN_IF_ERROR(s.WithRank(i, rank).status());
    s.set_output(0, PartialShape::UnknownOfRank(rank));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const int axis, ConcatAxis(axis_value[0], rank));
  PartialShape joined = PartialShape::UnknownOfRank(rank);
  int64_t along = 0;
  for (int i = first; i < first + n; ++i) {
    ASSIGN_OR_RETURN(PartialShape value, s.WithRank(i, rank));
    along = AddDims(along, value.dim(axis));
    value.set_dim(axis, PartialShape::kUnknown);
    ASSIGN_OR_RETURN(joined, joined.Merge(value));
  }
  joined.set_dim(axis, along);
  s.set_output(0, joined);
  return OkStatus();
}

// Returns the slice of dy that belongs to each value.
std::vector<Gradient> GradientSlices(const GradientScope& g, const Outputs& values, Output axis) {
  if (axis.dtype() != DType::kInt32) axis = Cast(axis, DType::kInt32);
  const Outputs shapes = CallN("ShapeN", {values});
  const Outputs offsets = CallN("ConcatOffset", {axis, shapes});
  std::vector<Gradient> dx;
  for (size_t i = 0; i < values.size(); ++i) {
    dx.push_back(Call("Slice", {g.dy(), offsets[i], shapes[i]}));
  }
  return dx;
}

std::vector<Gradient> ConcatGradient(const GradientScope& g) {
  Outputs values;
  for (int i = 1; i < g.num_inputs(); ++i) values.push_back(g.x(i));
  std::vector<Gradient> dx = GradientSlices(g, values, g.x(0));
  dx.insert(dx.begin(), Gradient());
  return dx;
}
std::vector<Gradient> ConcatV2Gradient(const GradientScope& g) {
  Outputs values;
  for (int i = 0; i < g.num_inputs() - 1; ++i) values.push_back(g.x(i));
  std::vector<Gradient> dx = GradientSlices(g, values, g.x(g.num_inputs() - 1));
  dx.push_back(Gradient());
  return dx;
}

template <class T>
class ConcatOffsetKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Dims first, IntVector(ctx.input(1), "shape[0]"));
    const int rank = static_cast<int>(first.size());
    ASSIGN_OR_RETURN(const int axis, AxisInput(ctx.input(0), rank, "concat_dim"));
    int64_t offset = 0;
    for (int i = 0; i + 1 < ctx.num_inputs(); ++i) {
      const std::string name = StrCat("shape[", i, "]");
      ASSIGN_OR_RETURN(const Dims shape, IntVector(ctx.input(i + 1), name, rank));
      for (int d = 0; d < rank; ++d) {
        if (d == axis || shape[d] == first[d]) continue;
        return InvalidArgument("All dimensions except ", axis, " must match. Input ", i,
                               " has dimension ", d, " of ", shape[d], ", input 0 has ", first[d]);
      }
      Tensor* output;
      RETURN_IF_ERROR(ctx.Allocate(i, Shape({rank}), &output));
      auto flat = output->mutable_flat<T>();
      std::fill(flat.begin(), flat.end(), 0);
      flat[axis] = static_cast<T>(offset);
      if (flat[axis] != offset || __builtin_add_overflow(offset, shape[axis], &offset)) {
        return InvalidArgument("the offset of input ", i, " does not fit in an ",
                               Name(kDTypeOf<T>));
      }
    }
    return OkStatus();
  }
};

Status ConcatOffsetShape(ShapeScope& s) {
  for (int i = 1; i < s.num_inputs(); ++i) s.set_output(i - 1, s.input(i));
  return OkStatus();
}

OP(Concat) {
  return {
      .doc = "Concatenates the values along dimension concat_dim.",
      .inputs = {{"concat_dim", "int32"}, {"values", Repeat("N", "T")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"N", Ints{.min = 2}}},
      .shape = [](ShapeScope& s) { return ConcatShape(s, 0, 1, s.num_inputs() - 1); },
      .gradient = ConcatGradient,
      .examples = {{.inputs = {{{.values = {1}}}, {{{2, 3}}, {{2, 1}}}}}},
  };
}

OP(ConcatV2) {
  return {
      .doc = "Concatenates the values along dimension `axis`.",
      .inputs = {{"values", Repeat("N", "T")}, {"axis", "Tidx"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAnyType}, {"Tidx", kIndex, DType::kInt32}},
      .attrs = {{"N", Ints{.min = 2}}},
      .shape =
          [](ShapeScope& s) { return ConcatShape(s, s.num_inputs() - 1, 0, s.num_inputs() - 1); },
      .gradient = ConcatV2Gradient,
      .examples = {{.inputs = {{{{2, 3}}, {{2, 1}}}, {{.values = {-1}}}}}},
  };
}

OP(ConcatOffset) {
  return {
      .doc =
          "Returns the offset of each tensor in the concatenation of tensors of these "
          "shapes.",
      .inputs = {{"concat_dim", "int32"}, {"shape", Repeat("N", "shape_type")}},
      .outputs = {{"offset", Repeat("N", "shape_type")}},
      .types = {{"shape_type", kIndex, DType::kInt32}},
      .attrs = {{"N", Ints{.min = 2}}},
      .shape = ConcatOffsetShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{.values = {1}}}, {{{2}, {2, 3}}, {{2}, {2, 1}}}}}},
  };
}

KERNEL_ANY_TYPE(Concat, ConcatKernel<false>);
KERNEL_ANY_TYPE(ConcatV2, ConcatKernel<true>);
KERNEL_BY("shape_type", ConcatOffset, ConcatOffsetKernel, int32_t, int64_t);

KERNEL_DEF({.op = "ConcatOffset",
            .device = "GPU",
            .types = {{"shape_type", DType::kInt32}},
            .host_args = {"concat_dim", "shape", "offset"},
            .make = Make<ConcatOffsetKernel<int32_t>>});

}  // namespace
}  // namespace penstock
