// SPDX-License-Identifier: Apache-2.0
//
// Ops that combine a sparse and a dense tensor entry by entry: SparseDenseCwiseAdd,
// SparseDenseCwiseMul, SparseDenseCwiseDiv, SparseTensorDenseAdd.
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

struct MulEntry {
  template <class L>
  L operator()(L a, L b) const {
    if constexpr (std::is_integral_v<L>) {
      return static_cast<L>(static_cast<Wrapping<L>>(a) * static_cast<Wrapping<L>>(b));
    } else {
      return a * b;
    }
  }
};
// The kernel has checked that integers are not divided by zero; the least integer divided by -1
// wraps around.
struct DivEntry {
  template <class L>
  L operator()(L a, L b) const {
    if constexpr (std::is_integral_v<L> && std::is_signed_v<L>) {
      if (b == L(-1)) return static_cast<L>(Wrapping<L>(0) - static_cast<Wrapping<L>>(a));
    }
    return static_cast<L>(a / b);
  }
};

// Returns the strides that map an index of the sparse operand to an element of the dense operand; 0
// in dimensions that are broadcast. InvalidArgument if the dense operand does not broadcast to the
// sparse one.
StatusOr<Dims> BroadcastStrides(const SparseTensor& sparse, const Shape& dense) {
  const int extra = sparse.rank() - dense.rank();
  Dims strides(sparse.rank(), 0);
  int64_t stride = 1;
  bool fits = extra >= 0;
  for (int d = dense.rank() - 1; fits && d >= 0; --d) {
    const int64_t size = dense.dim(d);
    fits = size == sparse.shape()[extra + d] || size == 1;
    strides[extra + d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (fits) return strides;
  return InvalidArgument("broadcasts dense to sparse only; got incompatible shapes: ",
                         ToString(sparse.shape()), " vs. ", dense.ToString());
}

template <class T, class Fn>
class CwiseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor sparse, SparseTensor::FromInputs(ctx, 0, "sp"));
    const Tensor& dense = ctx.input(3);
    ASSIGN_OR_RETURN(const Dims strides, BroadcastStrides(sparse, dense.shape()));
    RETURN_IF_ERROR(sparse.CheckBounds());
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{sparse.size()}, &output));
    using L = LoopType<T>;
    for (int64_t i = 0; i < sparse.size(); ++i) {
      int64_t at = 0;
      for (int d = 0; d < sparse.rank(); ++d) at += sparse.place(i)[d] * strides[d];
      const L b = static_cast<L>(dense.data<T>()[at]);
      if constexpr (std::is_same_v<Fn, DivEntry> && std::is_integral_v<T>) {
        if (b == 0) {
          return InvalidArgument(
              "SparseDenseCwiseDiv cannot divide by zero, but input dense tensor "
              "contains zero at ",
              ToString(sparse.place(i)));
        }
      }
      output->mutable_data<T>()[i] =
          static_cast<T>(Fn()(static_cast<L>(sparse.values().data<T>()[i]), b));
    }
    return OkStatus();
  }
};
template <class T>
using CwiseAdd = CwiseKernel<T, AddFn>;
template <class T>
using CwiseMul = CwiseKernel<T, MulEntry>;
template <class T>
using CwiseDiv = CwiseKernel<T, DivEntry>;

// Returns an int32 or int64 tensor as int64, without a copy if it is int64.
Tensor AsLongs(const Tensor& ints) {
  if (ints.dtype() == DType::kInt64) return ints;
  Tensor wide(DType::kInt64, ints.shape());
  std::copy_n(ints.data<int32_t>(), ints.num_elements(), wide.mutable_data<int64_t>());
  return wide;
}

template <class T>
class SparseTensorDenseAddKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor a,
                     SparseTensor::Make(AsLongs(ctx.input(0)), ctx.input(1), ctx.input(2), "a"));
    const Tensor& b = ctx.input(3);
    if (a.rank() != b.rank()) {
      return InvalidArgument("Two operands have different ranks; received: ", a.rank(), " and ",
                             b.rank());
    }
    for (int d = 0; d < b.rank(); ++d) {
      if (a.shape()[d] != b.dim(d)) {
        return InvalidArgument("Dimension ", d,
                               " does not equal (no broadcasting is supported): "
                               "sparse side ",
                               a.shape()[d], " vs dense side ", b.dim(d));
      }
    }
    RETURN_IF_ERROR(a.CheckBounds());
    Tensor* sum;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(3, 0, b.shape(), &sum));
    T* out = sum->mutable_data<T>();
    if (b.data<T>() != out) std::copy_n(b.data<T>(), b.num_elements(), out);
    using L = LoopType<T>;
    for (int64_t i = 0; i < a.size(); ++i) {
      int64_t at = 0;
      for (int d = 0; d < a.rank(); ++d) at = at * a.shape()[d] + a.place(i)[d];
      out[at] =
          static_cast<T>(AddFn()(static_cast<L>(out[at]), static_cast<L>(a.values().data<T>()[i])));
    }
    return OkStatus();
  }
};

Status CwiseShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  s.set_output(0, s.input(1).known_rank() ? s.input(1) : PartialShape{-1});
  return OkStatus();
}

Status DenseAddShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  s.set_output(0, s.input(3));
  return OkStatus();
}

// Shared by the gradients of product and quotient: gathers each entry's element of the dense
// operand, and adds up gradients in the shape of the dense operand.
struct DenseSide {
  Output elements, places, shape;

  explicit DenseSide(const GradientScope& g) {
    const Output zero = g.Const<int32_t>(0), dense = g.x(3);
    shape = ShapeOf(dense, DType::kInt64);
    const Output extra = SizeOf(g.x(2)) - SizeOf(shape);
    const Output at = Reshape(extra, g.Const(Tensor::Vector<int32_t>({1})));
    const Output ones = Fill(at, g.Const<int64_t>(1));
    const Output scale = g.x(2) / Maximum(ConcatV2({ones, shape}, zero), OnesLike(g.x(2)));
    const Output scaled = Call("FloorDiv", {g.x(0), Maximum(scale, OnesLike(scale))});
    const Output begin = ConcatV2({g.Const(Tensor::Vector<int32_t>({0})), at}, zero);
    places = Call("Slice", {scaled, begin, g.Const(Tensor::Vector<int32_t>({-1, -1}))});
    elements = GatherNd(dense, places);
  }
  Output ScatterToDense(Output values) const { return Call("ScatterNd", {places, values, shape}); }
};

Gradients MulGradient(const GradientScope& g) {
  const DenseSide dense(g);
  return {Gradient(), g.dy() * Conj(dense.elements), Gradient(),
          dense.ScatterToDense(g.dy() * Conj(g.x(1)))};
}

Gradients DivGradient(const GradientScope& g) {
  const DenseSide dense(g);
  return {Gradient(), g.dy() / Conj(dense.elements), Gradient(),
          dense.ScatterToDense(g.dy() * Conj(-g.x(1) / Square(dense.elements)))};
}

OpDef CwiseOp(const char* doc, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = Join(SparseArgs("sp"), {{"dense", "T"}}),
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}},
      .shape = CwiseShape,
      .gradient = std::move(gradient),
      .examples = {{.inputs = Join(SparseExample(), {{{{2, 3}}}})},
                   {.inputs = Join(SparseExample(), {{{{3}}}})},
                   {.inputs = Join(SparseExample(), {{{{2, 1}}}})}},
  };
}

}  // namespace

OP(SparseDenseCwiseAdd) {
  return CwiseOp(
      "Adds the elements of a dense tensor to the entries of a sparse one at the same "
      "indices. The dense one broadcasts.",
      nullptr);
}

OP(SparseDenseCwiseMul) {
  return CwiseOp(
      "Multiplies the entries of a sparse tensor by the elements of a dense one at the "
      "same indices. The dense one broadcasts.",
      MulGradient);
}

OP(SparseDenseCwiseDiv) {
  return CwiseOp(
      "Divides the entries of a sparse tensor by the elements of a dense one at the "
      "same indices. The dense one broadcasts.",
      DivGradient);
}
KERNEL(SparseDenseCwiseAdd, CwiseAdd, NUMBER_TYPES);
KERNEL(SparseDenseCwiseMul, CwiseMul, NUMBER_TYPES);
KERNEL(SparseDenseCwiseDiv, CwiseDiv, NUMBER_TYPES);

OP(SparseTensorDenseAdd) {
  return {
      .doc =
          "Adds a sparse tensor and a dense tensor of the same shape. Indices may occur "
          "several times.",
      .inputs = {{"a_indices", "Tindices"}, {"a_values", "T"}, {"a_shape", "Tindices"}, {"b", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kNumber}, {"Tindices", kIndex}},
      .shape = DenseAddShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        return {Gradient(), GatherNd(g.dy(), g.x(0)), Gradient(), g.dy()};
      },
      .examples = {{.inputs = Join(SparseExample(), {{{{2, 3}}}})}},
      .reuses = Reuse::kAny,
  };
}
KERNEL(SparseTensorDenseAdd, SparseTensorDenseAddKernel, NUMBER_TYPES);

}  // namespace penstock
