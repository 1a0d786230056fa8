// SPDX-License-Identifier: Apache-2.0
//
// SparseFillEmptyRows and SparseFillEmptyRowsGrad: give each empty row of a sparse tensor a default
// entry.
#include "core/tensor/type_lists.h"
#include "kernels/array/elements.h"
#include "kernels/sparse/fill_empty_rows_grad.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// Outputs: indices, values, which rows were empty, and the new index of each entry. Entries of a
// row keep their order.
class SparseFillEmptyRowsKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0));
    if (ctx.input(3).rank() != 0) {
      return InvalidArgument("default_value must be a scalar, has shape ",
                             ctx.input(3).shape().ToString());
    }
    if (x.rank() == 0) return InvalidArgument("dense_shape must have one element or more");
    const int64_t rows = x.shape()[0];
    if (rows == 0 && x.size() != 0) {
      return InvalidArgument(
          "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ", x.size());
    }
    ASSIGN_OR_RETURN(Tensor counted, ctx.Temporary(DType::kInt64, Shape{rows}));
    int64_t* counts = counted.mutable_data<int64_t>();
    std::fill_n(counts, rows, 0);
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t row = x.place(i)[0];
      if (row < 0 || row >= rows) {
        return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
      }
      ++counts[row];
    }
    return Fill(ctx, x, counts, rows);
  }

 private:
  static Status Fill(KernelContext& ctx, const SparseTensor& x, int64_t* counts, int64_t rows) {
    Tensor *indices, *values, *empty, *where;
    RETURN_IF_ERROR(ctx.Allocate(2, Shape{rows}, &empty));
    RETURN_IF_ERROR(ctx.Allocate(3, Shape{x.size()}, &where));
    // Replaces `counts` by the position of the next entry of each row.
    int64_t n = 0;
    for (int64_t r = 0; r < rows; ++r) {
      empty->mutable_data<bool>()[r] = counts[r] == 0;
      const int64_t count = std::max<int64_t>(counts[r], 1);
      counts[r] = n;
      n += count;
    }
    const int64_t rank = x.rank();
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{n, rank}, &indices));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{n}, &values));
    const DType dtype = x.dtype();
    const auto put = [&](int64_t at, const void* value, Place place) {
      std::copy(place.begin(), place.end(), indices->mutable_data<int64_t>() + at * rank);
      CopyElements(dtype, value, ElementAt(values->mutable_raw_data(), dtype, at), 1);
    };
    Dims first(rank, 0);
    for (int64_t r = 0; r < rows; ++r) {
      if (!empty->data<bool>()[r]) continue;
      first[0] = r;
      put(counts[r], ctx.input(3).raw_data(), first);
    }
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t at = counts[x.place(i)[0]]++;
      put(at, ElementAt(x.values().raw_data(), dtype, i), x.place(i));
      where->mutable_data<int64_t>()[i] = at;
    }
    return OkStatus();
  }
};

Status FillShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 0));
  RETURN_IF_ERROR(s.WithRank(3, 0).status());
  std::vector<int64_t> shape;
  const bool known = s.ConstantInts(2, &shape) && !shape.empty() && shape[0] >= 0;
  SetSparseOutput(s, 0, -1, rank, false);
  s.set_output(2, PartialShape{known ? shape[0] : -1});
  s.set_output(3, s.input(1).known_rank() ? s.input(1) : PartialShape{-1});
  return OkStatus();
}

Gradients FillGradient(const GradientScope& g) {
  const Outputs grads = CallN("SparseFillEmptyRowsGrad", {g.y(3), g.dy(1)});
  return {Gradient(), grads[0], Gradient(), grads[1]};
}

}  // namespace

OP(SparseFillEmptyRows) {
  return {
      .doc =
          "Returns a sparse tensor in which each empty row (of dimension 0) has an entry "
          "default_value in its first column.",
      .inputs = {{"indices", "int64"},
                 {"values", "T"},
                 {"dense_shape", "int64"},
                 {"default_value", "T"}},
      .outputs = {{"output_indices", "int64"},
                  {"output_values", "T"},
                  {"empty_row_indicator", "bool"},
                  {"reverse_index_map", "int64"}},
      .types = {{"T", kAllTypes}},
      .shape = FillShape,
      .gradient = FillGradient,
      // The example's gradient is not checked, because the gradient op has no gradient.
      .examples = {{.inputs = {{{{2, 2}, {0, 1, 2, 0}}}, {{{2}}}, {{{2}, {4, 3}}}, {{{}}}},
                    .check_gradient = false}},
  };
}
KERNEL_ANY_TYPE(SparseFillEmptyRows, SparseFillEmptyRowsKernel);

OP(SparseFillEmptyRowsGrad) {
  return FillEmptyRowsGradOp(
      "The gradients of SparseFillEmptyRows for its values and its default value.");
}
KERNEL(SparseFillEmptyRowsGrad, FillEmptyRowsGradKernel, NUMBER_TYPES);

}  // namespace penstock
