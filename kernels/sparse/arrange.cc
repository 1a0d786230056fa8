// SPDX-License-Identifier: Apache-2.0
//
// Sparse tensors put in order, reshaped, joined and cut: SparseReorder, SparseReshape,
// SparseConcat, SparseSplit, SparseSlice, SparseSliceGrad.
#include <algorithm>

#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
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

// The dimensions that `wanted`, with at most one -1, stands for.
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

// The entries of x within a box, moved to its corner, as outputs at, at + step, at + 2 step.
Status WriteBox(KernelContext& ctx, const SparseTensor& x, const Dims& start, const Dims& size,
                int at, int step) {
  std::vector<int64_t> places, picks;
  for (int64_t i = 0; i < x.size(); ++i) {
    const Place place = x.place(i);
    bool within = true;
    for (int d = 0; d < x.rank(); ++d) {
      // Written so that nothing overflows, whatever start is.
      within = within && place[d] >= start[d] &&
               static_cast<uint64_t>(place[d]) - static_cast<uint64_t>(start[d]) <
                   static_cast<uint64_t>(size[d]);
    }
    if (!within) continue;
    for (int d = 0; d < x.rank(); ++d) places.push_back(place[d] - start[d]);
    picks.push_back(i);
  }
  RETURN_IF_ERROR(WriteEntries(ctx, at, at + step, places, x.rank(), x.values(), picks));
  return WriteVector(ctx, at + 2 * step, size);
}

class SparseSplitKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const int pieces = ctx.num_outputs() / 3;
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 1));
    RETURN_IF_ERROR(x.CheckBounds());
    ASSIGN_OR_RETURN(const int64_t split_dim, IntScalar(ctx.input(0), "split_dim"));
    if (split_dim < -x.rank() || split_dim >= x.rank()) {
      return InvalidArgument("Input axis should be in range [", -x.rank(), ", ", x.rank(),
                             "), got ", split_dim);
    }
    const int axis = static_cast<int>(split_dim < 0 ? split_dim + x.rank() : split_dim);
    const int64_t length = x.shape()[axis];
    if (pieces > length) {
      return InvalidArgument(
          "Input num_split should be between 1 and the splitting dimension size (", length,
          "), got ", pieces);
    }
    // The first pieces take one more where the length cannot be divided.
    Dims start(x.rank(), 0), size = x.shape();
    for (int i = 0; i < pieces; ++i) {
      size[axis] = length / pieces + (i < length % pieces ? 1 : 0);
      RETURN_IF_ERROR(WriteBox(ctx, x, start, size, i, pieces));
      start[axis] += size[axis];
    }
    return OkStatus();
  }
};

class SparseSliceKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0));
    ASSIGN_OR_RETURN(const Dims start, IntVector(ctx.input(3), "start", x.rank()));
    ASSIGN_OR_RETURN(Dims size, IntVector(ctx.input(4), "size", x.rank()));
    for (int d = 0; d < x.rank(); ++d) {
      if (size[d] < 0) return InvalidArgument("Expected a non-negative size, got ", size[d]);
      if (start[d] < 0) {
        return InvalidArgument("start[", d, "] must not be negative, is ", start[d]);
      }
      size[d] = std::min(size[d], std::max<int64_t>(0, x.shape()[d] - start[d]));
    }
    return WriteBox(ctx, x, start, size, 0, 1);
  }
};

// The gradient of each kept entry, zero for the others. Outputs are in the order of the inputs.
class SparseSliceGradKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &grads = ctx.input(0), &in = ctx.input(1), &out = ctx.input(3);
    if (in.rank() != 2 || out.rank() != 2 || in.dim(1) != out.dim(1) || grads.rank() != 1 ||
        grads.dim(0) != out.dim(0)) {
      return InvalidArgument(
          "backprop_val_grad [n], input_indices [m, rank] and output_indices [n, rank] do not "
          "agree: shapes ",
          grads.shape().ToString(), ", ", in.shape().ToString(), ", ", out.shape().ToString());
    }
    const int64_t rank = in.dim(1);
    ASSIGN_OR_RETURN(const Dims start, IntVector(ctx.input(2), "input_start", rank));
    Tensor* result;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{in.dim(0)}, &result));
    const DType dtype = grads.dtype();
    ZeroElements(dtype, result->mutable_raw_data(), in.dim(0));
    const int64_t *from = in.data<int64_t>(), *kept = out.data<int64_t>();
    int64_t used = 0;
    for (int64_t i = 0; i < in.dim(0) && used < out.dim(0); ++i) {
      bool same = true;
      for (int64_t d = 0; d < rank; ++d) {
        same = same &&
               static_cast<uint64_t>(from[i * rank + d]) ==
                   static_cast<uint64_t>(kept[used * rank + d]) + static_cast<uint64_t>(start[d]);
      }
      if (!same) continue;
      CopyElements(dtype, ElementAt(grads.raw_data(), dtype, used++),
                   ElementAt(result->mutable_raw_data(), dtype, i), 1);
    }
    if (used == out.dim(0)) return OkStatus();
    return InvalidArgument("Elements of backprop_val_grad aren't all propagated. Num elements:",
                           out.dim(0), ", used: ", used);
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

Status ConcatShape(ShapeScope& s) {
  int64_t rank = -1;
  for (int i = 0; i < s.num_inputs() / 3; ++i) {
    ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(i, 2));
    if (indices.known_rank() && indices.dim(1) >= 0) rank = indices.dim(1);
  }
  SetSparseOutput(s, 0, -1, rank);
  return OkStatus();
}

Status SplitShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 1));
  const int pieces = s.num_outputs() / 3;
  for (int i = 0; i < pieces; ++i) {
    s.set_output(i, PartialShape{-1, rank});
    s.set_output(pieces + i, PartialShape{-1});
    s.set_output(2 * pieces + i, PartialShape{rank});
  }
  return OkStatus();
}

Status SliceShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 0));
  SetSparseOutput(s, 0, -1, rank);
  return OkStatus();
}

Status SliceGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(1, 2));
  s.set_output(0, PartialShape{indices.known_rank() ? indices.dim(0) : -1});
  return OkStatus();
}

}  // namespace

OP(SparseReorder,
   {
       .doc = "The entries of a sparse tensor in row-major order.",
       .inputs = SparseArgs("input"),
       .outputs = {{"output_indices", "int64"}, {"output_values", "T"}},
       .types = {{"T", kAllTypes}},
       .shape = ReorderShape,
       .gradient = ReorderGradient,
       .examples = {{.inputs = {{{{3, 2}, {1, 1, 0, 2, 0, 0}}}, {{{3}}}, {{{2}, {2, 3}}}}}},
   });
KERNEL_ANY_TYPE(SparseReorder, SparseReorderKernel);

OP(SparseReshape,
   {
       .doc = "The places of a sparse tensor's entries under another dense shape, in which one "
              "dimension may be -1.",
       .inputs = {{"input_indices", "int64"}, {"input_shape", "int64"}, {"new_shape", "int64"}},
       .outputs = {{"output_indices", "int64"}, {"output_shape", "int64"}},
       .shape = ReshapeShape,
       .gradient = NoGradient,
       .examples = {{.inputs = {{{{2, 2}, {0, 0, 1, 2}}}, {{{2}, {2, 3}}}, {{{2}, {3, -1}}}}}},
   });
KERNEL_ANY_TYPE(SparseReshape, SparseReshapeKernel);

OP(SparseConcat, {
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
                 });
KERNEL_ANY_TYPE(SparseConcat, SparseConcatKernel);

OP(SparseSplit,
   {
       .doc = "Cuts a sparse tensor into num_split pieces along one dimension; the first ones take "
              "one more where it cannot be divided.",
       .inputs =
           {{"split_dim", "int64"}, {"indices", "int64"}, {"values", "T"}, {"shape", "int64"}},
       .outputs = {{"output_indices", Repeat("num_split", "int64")},
                   {"output_values", Repeat("num_split", "T")},
                   {"output_shape", Repeat("num_split", "int64")}},
       .types = {{"T", kAllTypes}},
       .attrs = {{"num_split", Ints{.min = 1}}},
       .shape = SplitShape,
       .examples = {{.inputs = Join(ExampleArgs{{{{}, {1}}}}, SparseExample()),
                     .attrs = {{"num_split", 2}}}},
   });
KERNEL_ANY_TYPE(SparseSplit, SparseSplitKernel);

OP(SparseSlice,
   {
       .doc = "The entries of a sparse tensor within a box.",
       .inputs = Join(SparseArgs(""), {{"start", "int64"}, {"size", "int64"}}),
       .outputs = SparseArgs("output"),
       .types = {{"T", kAllTypes}},
       .shape = SliceShape,
       .gradient = [](const GradientScope& g) -> Gradients {
         Gradients dx(5);
         dx[1] = Call("SparseSliceGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)});
         return dx;
       },
       .examples = {{.inputs = Join(SparseExample(), {{{{2}, {0, 1}}}, {{{2}, {2, 5}}}})}},
   });
KERNEL_ANY_TYPE(SparseSlice, SparseSliceKernel);

OP(SparseSliceGrad,
   {
       .doc = "The gradient of SparseSlice for its values.",
       .inputs = {{"backprop_val_grad", "T"},
                  {"input_indices", "int64"},
                  {"input_start", "int64"},
                  {"output_indices", "int64"}},
       .outputs = {{"val_grad", "T"}},
       .types = {{"T", kNumber}},
       .shape = SliceGradShape,
       .gradient = [](const GradientScope& g) -> Gradients {
         // Linear: each gradient goes back to the place of its entry in the slice.
         const Output zero = g.Const<int32_t>(0);
         const Output numbers = Cast(
             Range(g.Const<int32_t>(1), SizeOf(g.x(0)) + 1.0, g.Const<int32_t>(1)), DType::kInt64);
         const Output owner = Call("SparseSliceGrad", {numbers, g.x(1), g.x(2), g.x(3)});
         return {
             Call("UnsortedSegmentSum", {g.dy(), owner - 1.0, Gather(ShapeOf(g.x(0)), zero, zero)}),
             Gradient(), Gradient(), Gradient()};
       },
       .examples = {{.inputs = {{{{2}}},
                                {{{3, 2}, {0, 0, 0, 2, 1, 1}}},
                                {{{2}, {0, 1}}},
                                {{{2, 2}, {0, 1, 1, 0}}}}}},
   });
KERNEL_ANY_TYPE(SparseSliceGrad, SparseSliceGradKernel);

}  // namespace penstock
