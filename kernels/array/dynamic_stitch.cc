// SPDX-License-Identifier: Apache-2.0
//
// DynamicStitch: copies slices to the places that their indices name; if several slices have the
// same index, the last one wins. ParallelDynamicStitch does not define which one wins; here it has
// the same kernel.
#include <algorithm>
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/gather_rows.h"

namespace penstock {
namespace {

// Returns the shape of the slices of data[i] (data[i].shape without its prefix indices[i].shape),
// merged with `others`, the shape of the slices of data[0] to data[i - 1]. InvalidArgument if they
// contradict each other, or if the prefix is wrong.
StatusOr<PartialShape> SliceShape(const PartialShape& indices, const PartialShape& data, int i,
                                  const PartialShape& others) {
  if (!indices.known_rank() || !data.known_rank()) return others;
  if (data.rank() < indices.rank() || !SubShape(data, 0, indices.rank()).Compatible(indices)) {
    return InvalidArgument("data[", i, "].shape = ", data.ToString(),
                           " does not start with indices[", i, "].shape = ", indices.ToString());
  }
  const PartialShape slice = SubShape(data, indices.rank(), data.rank());
  if (!slice.Compatible(others)) {
    return InvalidArgument("the slices of data[", i, "] have shape ", slice.ToString(),
                           ", those before it ", others.ToString());
  }
  return others.Merge(slice);
}

class DynamicStitchKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const int n = ctx.num_inputs() / 2;
    PartialShape slice;
    int64_t rows = 0;
    for (int i = 0; i < n; ++i) {
      const Tensor& indices = ctx.input(i);
      ASSIGN_OR_RETURN(slice, SliceShape(indices.shape(), ctx.input(n + i).shape(), i, slice));
      RETURN_IF_ERROR(
          CheckIndices(indices, std::numeric_limits<int32_t>::max(), StrCat("indices[", i, "]")));
      for (const int32_t row : indices.flat<int32_t>()) rows = std::max(rows, row + int64_t{1});
    }
    Dims dims(slice.dims().begin(), slice.dims().end());
    dims.insert(dims.begin(), rows);
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* merged;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &merged));
    const int64_t slice_elements = rows == 0 ? 0 : shape.num_elements() / rows;
    std::vector<bool> written(rows, false);
    for (int i = 0; i < n; ++i) {
      Put(ctx.input(i).flat<int32_t>(), ctx.input(n + i), slice_elements, merged, &written);
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (written[row]) continue;
      ZeroElements(merged->dtype(),
                   ElementAt(merged->mutable_raw_data(), merged->dtype(), row * slice_elements),
                   slice_elements);
    }
    return OkStatus();
  }

 private:
  static void Put(absl::Span<const int32_t> rows, const Tensor& data, int64_t slice_elements,
                  Tensor* merged, std::vector<bool>* written) {
    const DType dtype = data.dtype();
    for (size_t k = 0; k < rows.size(); ++k) {
      CopyElements(dtype, ElementAt(data.raw_data(), dtype, k * slice_elements),
                   ElementAt(merged->mutable_raw_data(), dtype, rows[k] * slice_elements),
                   slice_elements);
      (*written)[rows[k]] = true;
    }
  }
};

Status DynamicStitchShape(ShapeScope& s) {
  const int n = s.num_inputs() / 2;
  PartialShape slice;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(slice, SliceShape(s.input(i), s.input(n + i), i, slice));
    const Tensor* indices = s.constant(i);
    if (indices == nullptr) rows = PartialShape::kUnknown;
    for (int64_t k = 0; rows >= 0 && k < indices->num_elements(); ++k) {
      rows = std::max(rows, indices->data<int32_t>()[k] + int64_t{1});
    }
  }
  ASSIGN_OR_RETURN(PartialShape merged, JoinShapes(PartialShape({rows}), slice));
  s.set_output(0, std::move(merged));
  return OkStatus();
}

std::vector<Gradient> DynamicStitchGradient(const GradientScope& g) {
  const int n = g.num_inputs() / 2;
  std::vector<Gradient> dx(g.num_inputs());
  for (int i = 0; i < n; ++i) dx[n + i] = Gather(g.dy(), g.x(i), g.Const<int32_t>(0));
  return dx;
}

OpDef StitchOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"indices", Repeat("N", "int32")}, {"data", Repeat("N", "T")}},
      .outputs = {{"merged", "T"}},
      .types = {{"T", kAnyType}},
      .attrs = {{"N", Ints{.min = 1}}},
      .shape = DynamicStitchShape,
      .gradient = DynamicStitchGradient,
      .examples = {{.inputs = {{{{2}, {3, 0}}, {{1}, {1}}}, {{{2, 2}}, {{1, 2}}}}}},
  };
}

OP(DynamicStitch) {
  return StitchOp(
      "merged[indices[m][i], ...] = data[m][i, ...]; the last of several slices with "
      "the same index is kept.");
}

OP(ParallelDynamicStitch) {
  return StitchOp(
      "merged[indices[m][i], ...] = data[m][i, ...]; any one of several slices with the "
      "same index is kept.");
}
KERNEL_ANY_TYPE(DynamicStitch, DynamicStitchKernel);
KERNEL_ANY_TYPE(ParallelDynamicStitch, DynamicStitchKernel);

}  // namespace
}  // namespace penstock
