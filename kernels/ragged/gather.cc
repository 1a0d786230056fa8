// SPDX-License-Identifier: Apache-2.0
//
// RaggedGather: gathers rows of a ragged tensor by index.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/rows.h"
#include "kernels/ragged/row_splits.h"

namespace penstock {
namespace {

// Items [begin, end) of one level of splits.
struct Items {
  int64_t begin, end;
};

StatusOr<std::vector<Items>> PickedRows(const Tensor& indices, const RowSplits& splits) {
  const auto rows = static_cast<int64_t>(splits.size()) - 1;
  ASSIGN_OR_RETURN(const Dims flat,
                   IntVector(indices.Reshaped(Shape{indices.num_elements()}), "indices"));
  std::vector<Items> picked;
  for (size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] < 0 || flat[i] >= rows) {
      return InvalidArgument("indices[", i, "] = ", flat[i], " is not in [0, ", rows, ")");
    }
    picked.push_back({flat[i], flat[i] + 1});
  }
  return picked;
}

StatusOr<int64_t> Total(const std::vector<Items>& picked) {
  int64_t total = 0;
  for (const Items& items : picked) {
    if (__builtin_add_overflow(total, items.end - items.begin, &total)) {
      return InvalidArgument("the result has more rows than 64 bits can count");
    }
  }
  return total;
}

template <class Splits>
class RaggedGatherKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("PARAMS_RAGGED_RANK", &params_rank_));
    return node.Attr("OUTPUT_RAGGED_RANK", &output_rank_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &values = ctx.input(params_rank_), &indices = ctx.input(params_rank_ + 1);
    if (values.rank() == 0) return InvalidArgument("params_dense_values must not be a scalar");
    if (output_rank_ != indices.rank() + params_rank_ - 1) {
      return InvalidArgument("OUTPUT_RAGGED_RANK must be ", indices.rank() + params_rank_ - 1,
                             " for indices of shape ", indices.shape().ToString(), ", is ",
                             output_rank_);
    }
    ASSIGN_OR_RETURN(const std::vector<RowSplits> nested,
                     SplitsInputs(ctx, params_rank_, values.dim(0), /*all=*/false));
    RETURN_IF_ERROR(SplitByShape(ctx, indices.shape()));
    ASSIGN_OR_RETURN(std::vector<Items> picked, PickedRows(indices, nested[0]));
    for (int level = 0; level < params_rank_; ++level) {
      // If the index is a scalar, the result is the selected row, which has one level of splits
      // less than the input.
      const int output = indices.rank() - 1 + level;
      if (output >= 0) RETURN_IF_ERROR(SplitRows(ctx, output, picked, nested[level]));
      for (Items& items : picked) {
        items = {nested[level][items.begin], nested[level][items.end]};
      }
    }
    return CopyValues(ctx, values, picked);
  }

 private:
  // Writes the outermost splits of the result. Each dimension of `indices` except the last becomes
  // a level of splits, with rows of equal length.
  Status SplitByShape(KernelContext& ctx, const Shape& indices) const {
    int64_t rows = 1;
    for (int d = 0; d + 1 < indices.rank(); ++d) {
      rows *= indices.dim(d);
      RETURN_IF_ERROR(Write(ctx, d, rows, [&](int64_t) { return indices.dim(d + 1); }));
    }
    return OkStatus();
  }

  // Writes the row splits of the picked rows. `splits` are the input's; they give the length of
  // each row.
  static Status SplitRows(KernelContext& ctx, int output, const std::vector<Items>& picked,
                          const RowSplits& splits) {
    ASSIGN_OR_RETURN(const int64_t rows, Total(picked));
    size_t k = 0;
    int64_t at = 0;
    return Write(ctx, output, rows, [&](int64_t) {
      while (picked[k].begin + at == picked[k].end) {
        ++k;
        at = 0;
      }
      const int64_t row = picked[k].begin + at++;
      return splits[row + 1] - splits[row];
    });
  }

  template <class Length>
  static Status Write(KernelContext& ctx, int output, int64_t rows, Length length) {
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({rows + 1}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(output, shape, &out));
    Splits* to = out->mutable_data<Splits>();
    *to = 0;
    for (int64_t row = 0; row < rows; ++row) {
      if (__builtin_add_overflow(*to, length(row), to + 1)) {
        return InvalidArgument("row splits do not fit in ", Name(kDTypeOf<Splits>));
      }
      ++to;
    }
    return OkStatus();
  }

  Status CopyValues(KernelContext& ctx, const Tensor& values,
                    const std::vector<Items>& picked) const {
    Shape each = values.shape();
    each.RemoveDim(0);
    ASSIGN_OR_RETURN(const int64_t total, Total(picked));
    ASSIGN_OR_RETURN(const Shape shape, WithFirst(total, each));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(output_rank_, shape, &out));
    const DType dtype = values.dtype();
    const int64_t length = each.num_elements();
    int64_t to = 0;
    for (const Items& items : picked) {
      const int64_t count = (items.end - items.begin) * length;
      CopyElements(dtype, ElementAt(values.raw_data(), dtype, items.begin * length),
                   ElementAt(out->mutable_raw_data(), dtype, to), count);
      to += count;
    }
    return OkStatus();
  }

  int params_rank_ = 0, output_rank_ = 0;
};

Status GatherShape(ShapeScope& s) {
  const int inner = s.num_inputs() - 2, outer = s.num_outputs() - 1;
  if (outer < inner - 1) {
    return InvalidArgument("OUTPUT_RAGGED_RANK must be at least ", inner - 1, ", is ", outer);
  }
  for (int i = 0; i < inner; ++i) RETURN_IF_ERROR(s.WithRank(i, 1).status());
  ASSIGN_OR_RETURN(PartialShape values, s.WithRankAtLeast(inner, 1));
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(inner + 1, outer - inner + 1));
  for (int i = 0; i < outer; ++i) s.set_output(i, PartialShape{PartialShape::kUnknown});
  if (indices.known_rank() && indices.rank() == 1 && indices.dim(0) >= 0) {
    s.set_output(0, PartialShape{indices.dim(0) + 1});
  }
  if (values.known_rank()) values.set_dim(0, PartialShape::kUnknown);
  s.set_output(outer, std::move(values));
  return OkStatus();
}

// Returns dy as the gradient of the values that were gathered. To find these, gathers the indices
// of the values with the same op.
std::vector<Gradient> GatherGradient(const GradientScope& g) {
  const int inner = g.num_inputs() - 2, outer = g.num_outputs() - 1;
  const Output values = g.x(inner), zero = g.Const<int64_t>(0);
  const Output count = Gather(ShapeOf(values, DType::kInt64), zero, zero);
  std::vector<NodeInput> inputs;
  Outputs splits;
  for (int i = 0; i < inner; ++i) splits.push_back(g.x(i));
  inputs = {splits, Range(zero, count, g.Const<int64_t>(1)), g.x(inner + 1)};
  const Outputs places = CallN("RaggedGather", inputs, {{"OUTPUT_RAGGED_RANK", outer}});
  std::vector<Gradient> dx(g.num_inputs());
  dx[inner] = Gradient(g.dy(outer), places[outer], ShapeOf(values));
  return dx;
}

}  // namespace

OP(RaggedGather) {
  return {
      .doc = "Gathers the rows of a ragged tensor at `indices`.",
      .inputs = {{"params_nested_splits", Repeat("PARAMS_RAGGED_RANK", "Tsplits")},
                 {"params_dense_values", "Tvalues"},
                 {"indices", "Tindices"}},
      .outputs = {{"output_nested_splits", Repeat("OUTPUT_RAGGED_RANK", "Tsplits")},
                  {"output_dense_values", "Tvalues"}},
      .types = {{"Tvalues", kAnyType}, {"Tindices", kIndex}, SplitsType()},
      .attrs = {{"PARAMS_RAGGED_RANK", Ints{.min = 1}}, {"OUTPUT_RAGGED_RANK", Ints{.min = 0}}},
      .shape = GatherShape,
      .gradient = GatherGradient,
      .examples =
          {{.inputs = {{{{4}, {0, 3, 3, 5}}}, {{{5, 2}}}, {{{3}, {2, 0, 2}}}},
            .attrs = {{"OUTPUT_RAGGED_RANK", 1}}},
           {.inputs = {{{{3}, {0, 2, 3}}, {{4}, {0, 3, 3, 5}}}, {{{5}}}, {{{2, 1}, {1, 0}}}},
            .attrs = {{"OUTPUT_RAGGED_RANK", 3}}}},
  };
}
KERNEL_BY("Tsplits", RaggedGather, RaggedGatherKernel, int32_t, int64_t);

}  // namespace penstock
