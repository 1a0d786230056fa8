// SPDX-License-Identifier: Apache-2.0
//
// RaggedFillEmptyRows and RaggedFillEmptyRowsGrad: give each empty row of a ragged tensor a default
// value.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/sparse/fill_empty_rows_grad.h"

namespace penstock {
namespace {

// Outputs: the row of each value, the values, which rows were empty, and the new index of each
// value. Values of a row keep their order.
class RaggedFillEmptyRowsKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor &row_ids = ctx.input(0), &values = ctx.input(1);
    if (row_ids.rank() != 1 || values.rank() != 1 || row_ids.dim(0) != values.dim(0)) {
      return InvalidArgument("value_rowids and values must be vectors of the same length; shapes ",
                             row_ids.shape().ToString(), " and ", values.shape().ToString());
    }
    if (ctx.input(2).rank() != 0 || ctx.input(3).rank() != 0) {
      return InvalidArgument("nrows and default_value must be scalars, have shapes ",
                             ctx.input(2).shape().ToString(), " and ",
                             ctx.input(3).shape().ToString());
    }
    const int64_t rows = ctx.input(2).scalar<int64_t>();
    ASSIGN_OR_RETURN(const Shape per_row, Shape::Make(Dims{rows}));
    ASSIGN_OR_RETURN(Tensor counted, ctx.Temporary(DType::kInt64, per_row));
    int64_t* const counts = counted.mutable_data<int64_t>();
    std::fill_n(counts, rows, 0);
    for (int64_t i = 0; i < row_ids.dim(0); ++i) {
      const int64_t row = row_ids.data<int64_t>()[i];
      if (row < 0 || row >= rows) {
        return InvalidArgument("value_rowids[", i, "] is invalid: ", row, " is not in [0, ", rows,
                               ")");
      }
      ++counts[row];
    }
    return Fill(ctx, counts, per_row);
  }

  static Status Fill(KernelContext& ctx, int64_t* counts, const Shape& per_row) {
    const Tensor &row_ids = ctx.input(0), &values = ctx.input(1);
    const DType dtype = values.dtype();
    Tensor *new_ids, *new_values, *empty, *where;
    RETURN_IF_ERROR(ctx.Allocate(2, per_row, &empty));
    RETURN_IF_ERROR(ctx.Allocate(3, values.shape(), &where));
    // Replaces `counts` by the position of the next value of each row.
    int64_t n = 0;
    for (int64_t row = 0; row < per_row.num_elements(); ++row) {
      empty->mutable_data<bool>()[row] = counts[row] == 0;
      const int64_t count = std::max<int64_t>(counts[row], 1);
      counts[row] = n;
      n += count;
    }
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{n}, &new_ids));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{n}, &new_values));
    const auto put = [&](int64_t at, int64_t row, const void* value) {
      new_ids->mutable_data<int64_t>()[at] = row;
      CopyElements(dtype, value, ElementAt(new_values->mutable_raw_data(), dtype, at), 1);
    };
    for (int64_t row = 0; row < per_row.num_elements(); ++row) {
      if (empty->data<bool>()[row]) put(counts[row], row, ctx.input(3).raw_data());
    }
    for (int64_t i = 0; i < values.dim(0); ++i) {
      const int64_t row = row_ids.data<int64_t>()[i], at = counts[row]++;
      put(at, row, ElementAt(values.raw_data(), dtype, i));
      where->mutable_data<int64_t>()[i] = at;
    }
    return OkStatus();
  }
};

Status RaggedFillShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape row_ids, s.WithRank(0, 1));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  for (int i : {2, 3}) RETURN_IF_ERROR(s.WithRank(i, 0).status());
  std::vector<int64_t> rows;
  const bool known = s.ConstantInts(2, &rows) && rows.size() == 1 && rows[0] >= 0;
  for (int i : {0, 1}) RETURN_IF_ERROR(SetOutput(s, i, {PartialShape::kUnknown}));
  s.set_output(2, PartialShape{known ? rows[0] : PartialShape::kUnknown});
  s.set_output(3, row_ids.known_rank() ? row_ids : PartialShape{PartialShape::kUnknown});
  return OkStatus();
}

OP(RaggedFillEmptyRows) {
  return {
      .doc =
          "Gives each empty row of a ragged tensor of nrows rows the value default_value. "
          "reverse_index_map has the new position of each value.",
      .inputs = {{"value_rowids", "int64"},
                 {"values", "T"},
                 {"nrows", "int64"},
                 {"default_value", "T"}},
      .outputs = {{"output_value_rowids", "int64"},
                  {"output_values", "T"},
                  {"empty_row_indicator", "bool"},
                  {"reverse_index_map", "int64"}},
      .types = {{"T", kAllTypes}},
      .shape = RaggedFillShape,
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        const Outputs grads = CallN("RaggedFillEmptyRowsGrad", {g.y(3), g.dy(1)});
        return {Gradient(), grads[0], Gradient(), grads[1]};
      },
      // The example's gradient is not checked, because the gradient op has no gradient.
      .examples = {{.inputs = {{{{3}, {0, 0, 2}}}, {{{3}}}, {{.values = {4}}}, {{{}}}},
                    .check_gradient = false}},
  };
}
KERNEL_ANY_TYPE(RaggedFillEmptyRows, RaggedFillEmptyRowsKernel);

OP(RaggedFillEmptyRowsGrad) {
  return FillEmptyRowsGradOp(
      "The gradients of RaggedFillEmptyRows for its values and its default value.");
}
KERNEL(RaggedFillEmptyRowsGrad, FillEmptyRowsGradKernel, NUMBER_TYPES);

}  // namespace
}  // namespace penstock
