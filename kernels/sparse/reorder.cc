// SPDX-License-Identifier: Apache-2.0
//
// SparseReorder, SparseReshape: put the entries in row-major order, or give the tensor another
// shape.
#include "kernels/array/arguments.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

class SparseReorderKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "input"));
    const std::vector<int64_t> order = x.Order();
    std::vector<int64_t> places;
    for (const int64_t i : order) places.insert(places.end(), x.place(i).begin(), x.place(i).end());
    return WriteEntries(ctx, 0, 1, places, x.rank(), x.values(), order);
  }
};

// Returns `wanted` in which the one -1, if any, is replaced by the size that keeps the number of
// elements. InvalidArgument if several sizes are -1, or if no size fits.
StatusOr<Dims> Resolve(const Dims& from, Dims wanted) {
  ASSIGN_OR_RETURN(const int64_t size, CheckedProduct(from));
  int unknown = -1;
  Dims known;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] != -1) {
      known.push_back(wanted[d]);
    } else if (unknown >= 0) {
      return InvalidArgument("only one output dimension may be -1, not both ", unknown, " and ", d);
    } else {
      unknown = static_cast<int>(d);
    }
  }
  ASSIGN_OR_RETURN(const int64_t product, CheckedProduct(known));
  if (unknown >= 0) {
    if (product == 0 && size != 0) {
      return InvalidArgument(
          "reshape cannot infer the missing input size for an empty tensor "
          "unless all specified input sizes are non-zero");
    }
    if (product != 0 && size % product != 0) {
      return InvalidArgument("Input to reshape is a SparseTensor with ", size,
                             " dense values, but the requested shape requires a multiple of ",
                             product);
    }
    wanted[unknown] = product == 0 ? 0 : size / product;
  } else if (product != size) {
    return InvalidArgument("Input to reshape is a tensor with ", size,
                           " dense values, but the requested shape has ", product);
  }
  return wanted;
}

class SparseReshapeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    if (indices.rank() != 2) {
      return InvalidArgument("input_indices must be a matrix, has shape ",
                             indices.shape().ToString());
    }
    const int64_t n = indices.dim(0);
    ASSIGN_OR_RETURN(
        const SparseTensor x,
        SparseTensor::Make(indices, Tensor(DType::kBool, Shape{n}), ctx.input(1), "input"));
    ASSIGN_OR_RETURN(Dims wanted, IntVector(ctx.input(2), "new_shape"));
    ASSIGN_OR_RETURN(const Dims shape, Resolve(x.shape(), std::move(wanted)));
    RETURN_IF_ERROR(x.CheckBounds());
    RETURN_IF_ERROR(WriteVector(ctx, 1, shape));
    const int64_t rank = static_cast<int64_t>(shape.size());
    Tensor* places;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{n, rank}, &places));
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = 0;
      for (int d = 0; d < x.rank(); ++d) at = at * x.shape()[d] + x.place(i)[d];
      for (int64_t d = rank - 1; d >= 0; --d) {
        places->mutable_data<int64_t>()[i * rank + d] = at % shape[d];
        at /= shape[d];
      }
    }
    return OkStatus();
  }
};

Status ReorderShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 0));
  SetSparseOutput(s, 0, s.input(1).known_rank() ? s.input(1).dim(0) : -1, rank, false);
  return OkStatus();
}

Gradients ReorderGradient(const GradientScope& g) {
  const Output zero = g.Const<int32_t>(0);
  const Output n = Gather(ShapeOf(g.x(0)), zero, zero);
  const Output numbers = Range(zero, n, g.Const<int32_t>(1));
  const Output order = Call("SparseReorder", {g.x(0), numbers, g.x(2)}).Sibling(1);
  return {Gradient(), Gather(g.dy(1), Call("InvertPermutation", {order}), zero), Gradient()};
}

Status ReshapeShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(0, 2));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  ASSIGN_OR_RETURN(const PartialShape wanted, s.WithRank(2, 1));
  const int64_t rank = wanted.known_rank() ? wanted.dim(0) : -1;
  s.set_output(0, PartialShape{indices.known_rank() ? indices.dim(0) : -1, rank});
  s.set_output(1, PartialShape{rank});
  return OkStatus();
}

}  // namespace

OP(SparseReorder) {
  return {
      .doc = "Sorts the entries of a sparse tensor in row-major order.",
      .inputs = SparseArgs("input"),
      .outputs = {{"output_indices", "int64"}, {"output_values", "T"}},
      .types = {{"T", kAllTypes}},
      .shape = ReorderShape,
      .gradient = ReorderGradient,
      .examples = {{.inputs = {{{{3, 2}, {1, 1, 0, 2, 0, 0}}}, {{{3}}}, {{{2}, {2, 3}}}}}},
  };
}
KERNEL_ANY_TYPE(SparseReorder, SparseReorderKernel);

OP(SparseReshape) {
  return {
      .doc =
          "Returns the indices of a sparse tensor's entries in another dense shape; one "
          "dimension of the shape may be -1.",
      .inputs = {{"input_indices", "int64"}, {"input_shape", "int64"}, {"new_shape", "int64"}},
      .outputs = {{"output_indices", "int64"}, {"output_shape", "int64"}},
      .shape = ReshapeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2}, {0, 0, 1, 2}}}, {{{2}, {2, 3}}}, {{{2}, {3, -1}}}}}},
  };
}
KERNEL_ANY_TYPE(SparseReshape, SparseReshapeKernel);

}  // namespace penstock
