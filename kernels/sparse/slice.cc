// SPDX-License-Identifier: Apache-2.0
//
// SparseSplit, SparseSlice and its gradient: select the entries within boxes.
#include <algorithm>

#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// Writes the entries of x within a box, relative to its corner, to the outputs at, at + step, and
// at + 2 * step.
Status WriteBox(KernelContext& ctx, const SparseTensor& x, const Dims& start, const Dims& size,
                int at, int step) {
  std::vector<int64_t> places, picks;
  for (int64_t i = 0; i < x.size(); ++i) {
    const Place place = x.place(i);
    bool within = true;
    for (int d = 0; d < x.rank(); ++d) {
      // Compares place - start with size, because start + size could overflow.
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
    // If `pieces` does not divide the length, the first pieces are one longer than the others.
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

// Outputs the gradient of each input entry: the gradient of the same entry of the slice, or zero if
// the slice does not contain the entry.
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

OP(SparseSplit) {
  return {
      .doc =
          "Splits a sparse tensor into num_split pieces along one dimension. If num_split does not "
          "divide the size of that dimension, the first pieces are one longer than the others.",
      .inputs = {{"split_dim", "int64"}, {"indices", "int64"}, {"values", "T"}, {"shape", "int64"}},
      .outputs = {{"output_indices", Repeat("num_split", "int64")},
                  {"output_values", Repeat("num_split", "T")},
                  {"output_shape", Repeat("num_split", "int64")}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"num_split", Ints{.min = 1}}},
      .shape = SplitShape,
      .examples = {{.inputs = Join(ExampleArgs{{{{}, {1}}}}, SparseExample()),
                    .attrs = {{"num_split", 2}}}},
  };
}
KERNEL_ANY_TYPE(SparseSplit, SparseSplitKernel);

OP(SparseSlice) {
  return {
      .doc =
          "Returns the entries of a sparse tensor within a box, given by its start and "
          "size.",
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
  };
}
KERNEL_ANY_TYPE(SparseSlice, SparseSliceKernel);

OP(SparseSliceGrad) {
  return {
      .doc = "The gradient of SparseSlice for its values.",
      .inputs = {{"backprop_val_grad", "T"},
                 {"input_indices", "int64"},
                 {"input_start", "int64"},
                 {"output_indices", "int64"}},
      .outputs = {{"val_grad", "T"}},
      .types = {{"T", kNumber}},
      .shape = SliceGradShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        // The op is linear: the gradient of an entry of the slice is taken from the gradient at its
        // place in the input.
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
  };
}
KERNEL_ANY_TYPE(SparseSliceGrad, SparseSliceGradKernel);

}  // namespace penstock
