// SPDX-License-Identifier: Apache-2.0
//
// SparseConcat: concatenates sparse tensors along a dimension.
#include <algorithm>

#include "kernels/array/elements.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// Inputs: N indices, N values, N shapes.
class SparseConcatKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("concat_dim", &concat_dim_); }

  Status Compute(KernelContext& ctx) override {
    const int n = ctx.num_inputs() / 3;
    std::vector<SparseTensor> parts;
    for (int i = 0; i < n; ++i) {
      ASSIGN_OR_RETURN(SparseTensor part,
                       SparseTensor::Make(ctx.input(i), ctx.input(n + i), ctx.input(2 * n + i)));
      RETURN_IF_ERROR(part.CheckBounds());
      parts.push_back(std::move(part));
    }
    const int rank = parts[0].rank();
    if (concat_dim_ < -rank || concat_dim_ >= rank) {
      return InvalidArgument("Concat dimension must be in range [", -rank, ", ", rank, "), got ",
                             concat_dim_);
    }
    const int axis = static_cast<int>(concat_dim_ < 0 ? concat_dim_ + rank : concat_dim_);
    Dims shape = parts[0].shape();
    shape[axis] = 0;
    for (int i = 0; i < n; ++i) {
      RETURN_IF_ERROR(CheckPart(parts[i], i, rank, axis, shape));
      if (__builtin_add_overflow(shape[axis], parts[i].shape()[axis], &shape[axis])) {
        return InvalidArgument("the sum of dimension ", axis, " does not fit into 64 bits");
      }
    }
    RETURN_IF_ERROR(CheckedProduct(shape).status());
    return Join(ctx, parts, axis, shape);
  }

 private:
  static Status CheckPart(const SparseTensor& part, int i, int rank, int axis, const Dims& shape) {
    if (part.rank() != rank) {
      return InvalidArgument("Ranks of all input tensors must match: expected ", rank, " but got ",
                             part.rank(), " at position ", i);
    }
    for (int d = 0; d < rank; ++d) {
      if (d != axis && part.shape()[d] != shape[d]) {
        return InvalidArgument("Input shapes must match: expected ", shape[d], " for dimension ", d,
                               " but got ", part.shape()[d], " at position ", i);
      }
    }
    return OkStatus();
  }

  static Status Join(KernelContext& ctx, const std::vector<SparseTensor>& parts, int axis,
                     const Dims& shape) {
    const int rank = static_cast<int>(shape.size());
    int64_t n = 0, offset = 0;
    for (const SparseTensor& part : parts) n += part.size();
    const DType dtype = parts[0].dtype();
    Tensor places(DType::kInt64, Shape{n, rank});
    ASSIGN_OR_RETURN(Tensor values, ctx.Temporary(dtype, Shape{n}));
    int64_t row = 0;
    for (const SparseTensor& part : parts) {
      CopyElements(dtype, part.values().raw_data(),
                   ElementAt(values.mutable_raw_data(), dtype, row), part.size());
      for (int64_t i = 0; i < part.size(); ++i, ++row) {
        int64_t* place = places.mutable_data<int64_t>() + row * rank;
        std::copy(part.place(i).begin(), part.place(i).end(), place);
        place[axis] += offset;
      }
      offset += part.shape()[axis];
    }
    const Tensor shape_tensor = Tensor::Vector<int64_t>({shape.begin(), shape.end()});
    ASSIGN_OR_RETURN(const SparseTensor all, SparseTensor::Make(places, values, shape_tensor));
    std::vector<int64_t> sorted, order = all.Order();
    for (const int64_t i : order) {
      sorted.insert(sorted.end(), all.place(i).begin(), all.place(i).end());
    }
    RETURN_IF_ERROR(WriteEntries(ctx, 0, 1, sorted, rank, values, order));
    return WriteVector(ctx, 2, shape);
  }

  int64_t concat_dim_ = 0;
};

Status ConcatShape(ShapeScope& s) {
  int64_t rank = -1;
  for (int i = 0; i < s.num_inputs() / 3; ++i) {
    ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(i, 2));
    if (indices.known_rank() && indices.dim(1) >= 0) rank = indices.dim(1);
  }
  SetSparseOutput(s, 0, -1, rank);
  return OkStatus();
}

}  // namespace

OP(SparseConcat) {
  return {
      .doc = "Joins sparse tensors along one dimension.",
      .inputs = {{"indices", Repeat("N", "int64")},
                 {"values", Repeat("N", "T")},
                 {"shapes", Repeat("N", "int64")}},
      .outputs = SparseArgs("output"),
      .types = {{"T", kAllTypes}},
      .attrs = {{"concat_dim", Ints{}}, {"N", Ints{.min = 2}}},
      .shape = ConcatShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2}, {0, 1, 1, 0}}, {{1, 2}, {1, 1}}},
                               {{{2}}, {{1}}},
                               {{{2}, {2, 3}}, {{2}, {2, 2}}}},
                    .attrs = {{"concat_dim", 1}}}},
  };
}
KERNEL_ANY_TYPE(SparseConcat, SparseConcatKernel);

}  // namespace penstock
