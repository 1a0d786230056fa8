// SPDX-License-Identifier: Apache-2.0
//
// MatrixBandPart: matrices with all elements outside of a band around the diagonal set to zero.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"

namespace penstock {
namespace {

// Returns the width of the band on one side: the input or, if it is negative, `limit`, so that the
// band includes all elements on that side. InvalidArgument if the input exceeds `limit`.
StatusOr<int64_t> BandWidth(const Tensor& tensor, string_view name, int64_t limit) {
  ASSIGN_OR_RETURN(const int64_t width, IntScalar(tensor, name));
  if (width > limit) {
    return InvalidArgument(name, " must be negative or at most ", limit, ", got: ", width);
  }
  return width < 0 ? limit : width;
}

class MatrixBandPartKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Shape shape = input.shape();
    if (shape.rank() < 2) {
      return InvalidArgument("input must be at least 2-dim, received shape: ", shape.ToString());
    }
    const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
    ASSIGN_OR_RETURN(const int64_t lower, BandWidth(ctx.input(1), "num_lower", rows));
    ASSIGN_OR_RETURN(const int64_t upper, BandWidth(ctx.input(2), "num_upper", columns));
    const DType dtype = input.dtype();
    const void* from = input.raw_data();
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    void* to = output->mutable_raw_data();
    if (shape.num_elements() == 0) return OkStatus();
    ctx.threads().ParallelFor(
        shape.num_elements() / columns, 10 + 0.5 * columns, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i % rows, start = i * columns;
            const int64_t first = std::clamp<int64_t>(row - lower, 0, columns);
            const int64_t last = std::clamp<int64_t>(row + upper + 1, first, columns);
            ZeroElements(dtype, ElementAt(to, dtype, start), first);
            if (to != from) {
              CopyElements(dtype, ElementAt(from, dtype, start + first),
                           ElementAt(to, dtype, start + first), last - first);
            }
            ZeroElements(dtype, ElementAt(to, dtype, start + last), columns - last);
          }
        });
    return OkStatus();
  }
};

OpDef MatrixBandPartOp(const char* index_type) {
  OpDef op = {
      .doc =
          "Keeps num_lower subdiagonals and num_upper superdiagonals of each matrix, and "
          "sets other elements to zero. A negative number keeps all.",
      .inputs = {{"input", "T"}, {"num_lower", index_type}, {"num_upper", index_type}},
      .outputs = {{"band", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = [](ShapeScope& s) -> Status {
        ASSIGN_OR_RETURN(PartialShape input, s.WithRankAtLeast(0, 2));
        s.set_output(0, std::move(input));
        return OkStatus();
      },
      .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
        return {Call("MatrixBandPart", {g.dy(), g.x(1), g.x(2)}), Gradient(), Gradient()};
      },
      .examples = {{.inputs = {{{{2, 3, 4}}}, {{.values = {1}}}, {{.values = {-1}}}}}},
      .reuses = Reuse::kFirst,
  };
  return op;
}

OpDef WithIndexType(OpDef op) {
  op.types.push_back({"Tindex", kIndex, DType::kInt64});
  return op;
}

OP(MatrixBandPart) { return WithIndexType(MatrixBandPartOp("Tindex")); }
OP(BatchMatrixBandPart) { return MatrixBandPartOp("int64"); }
KERNEL_ANY_TYPE(MatrixBandPart, MatrixBandPartKernel);
KERNEL_ANY_TYPE(BatchMatrixBandPart, MatrixBandPartKernel);

}  // namespace
}  // namespace penstock
