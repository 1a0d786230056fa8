// SPDX-License-Identifier: Apache-2.0
//
// RaggedTensorToSparse: converts a ragged tensor to a sparse one with all of its values.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/ragged/row_splits.h"

namespace penstock {
namespace {

// Calls visit(place) for each value, in order. A place is the list of the coordinates of the value:
// the row, the position in the row, and so on.
template <class Visit>
void ForEachPlace(const std::vector<RowSplits>& nested, int64_t values, const Visit& visit) {
  const size_t levels = nested.size();
  std::vector<int64_t> rows(levels, 0), place(levels + 1);
  for (int64_t value = 0; value < values; ++value) {
    int64_t item = value;
    for (size_t level = levels; level-- > 0;) {
      const RowSplits& splits = nested[level];
      while (splits[rows[level] + 1] <= item) ++rows[level];
      place[level + 1] = item - splits[rows[level]];
      item = rows[level];
    }
    place[0] = item;
    visit(place);
  }
}

class RaggedToSparseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("RAGGED_RANK", &ragged_rank_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(ragged_rank_);
    if (values.rank() == 0) return InvalidArgument("rt_dense_values must not be a scalar");
    ASSIGN_OR_RETURN(const std::vector<RowSplits> nested,
                     SplitsInputs(ctx, ragged_rank_, values.dim(0), /*all=*/true));
    RETURN_IF_ERROR(WritePlaces(ctx, nested, values.shape()));
    ctx.SetOutput(1, values.Reshaped(Shape{values.num_elements()}));
    return WriteShape(ctx, nested, values.shape());
  }

 private:
  Status WritePlaces(KernelContext& ctx, const std::vector<RowSplits>& nested,
                     const Shape& values) const {
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Make({values.num_elements(), ragged_rank_ + values.rank()}));
    Tensor* places;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &places));
    if (shape.num_elements() == 0) return OkStatus();
    int64_t* to = places->mutable_data<int64_t>();
    const int64_t inner = values.num_elements() / values.dim(0);
    ForEachPlace(nested, values.dim(0), [&](const std::vector<int64_t>& place) {
      for (int64_t i = 0; i < inner; ++i) {
        to = std::copy(place.begin(), place.end(), to) + values.rank() - 1;
        for (int64_t d = values.rank() - 1, rest = i; d > 0; rest /= values.dim(d--)) {
          to[d - values.rank()] = rest % values.dim(d);
        }
      }
    });
    return OkStatus();
  }

  static Status WriteShape(KernelContext& ctx, const std::vector<RowSplits>& nested,
                           const Shape& values) {
    std::vector<int64_t> dims = {static_cast<int64_t>(nested[0].size()) - 1};
    for (const RowSplits& splits : nested) {
      int64_t longest = 0;
      for (size_t i = 1; i < splits.size(); ++i) {
        longest = std::max(longest, splits[i] - splits[i - 1]);
      }
      dims.push_back(longest);
    }
    for (int d = 1; d < values.rank(); ++d) dims.push_back(values.dim(d));
    ctx.SetOutput(2, Tensor::Vector<int64_t>(dims));
    return OkStatus();
  }

  int ragged_rank_ = 0;
};

Status ToSparseShape(ShapeScope& s) {
  const int levels = s.num_inputs() - 1;
  for (int i = 0; i < levels; ++i) RETURN_IF_ERROR(s.WithRank(i, 1).status());
  ASSIGN_OR_RETURN(const PartialShape values, s.WithRankAtLeast(levels, 1));
  const bool known = values.known_rank();
  int64_t size = known ? 1 : PartialShape::kUnknown;
  for (int d = 0; known && d < values.rank(); ++d) size = MultiplyDims(size, values.dim(d));
  const int64_t rank = known ? levels + values.rank() : PartialShape::kUnknown;
  s.set_output(0, PartialShape{size, rank});
  s.set_output(1, PartialShape{size});
  s.set_output(2, PartialShape{rank});
  return OkStatus();
}

std::vector<Gradient> ToSparseGradient(const GradientScope& g) {
  std::vector<Gradient> dx(g.num_inputs());
  const Output values = g.x(g.num_inputs() - 1);
  dx.back() = Reshape(g.dy(1), ShapeOf(values));
  return dx;
}

}  // namespace

OP(RaggedTensorToSparse) {
  return {
      .doc = "Converts a ragged tensor to a sparse one.",
      .inputs = {{"rt_nested_splits", Repeat("RAGGED_RANK", "Tsplits")}, {"rt_dense_values", "T"}},
      .outputs = {{"sparse_indices", "int64"},
                  {"sparse_values", "T"},
                  {"sparse_dense_shape", "int64"}},
      .types = {{"T", kAnyType}, SplitsType()},
      .attrs = {{"RAGGED_RANK", Ints{.min = 1}}},
      .shape = ToSparseShape,
      .gradient = ToSparseGradient,
      .examples = {{.inputs = {{{{4}, {0, 3, 3, 5}}}, {{{5}}}}},
                   {.inputs = {{{{3}, {0, 2, 3}}, {{4}, {0, 3, 3, 5}}}, {{{5, 2}}}}}},
  };
}
KERNEL_ANY_TYPE(RaggedTensorToSparse, RaggedToSparseKernel);

}  // namespace penstock
