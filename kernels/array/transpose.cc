// SPDX-License-Identifier: Apache-2.0
//
// Transpose, ConjugateTranspose, InvertPermutation: permutations of dimensions.
#include <complex>

#include "absl/strings/str_join.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/array/strided_copy.h"

namespace penstock {
namespace {

// Returns `perm` with its negative axes, which count from the end, counted from the front.
// InvalidArgument unless it is a permutation of the axes.
StatusOr<Dims> Permutation(absl::Span<const int64_t> perm, int rank) {
  if (static_cast<int>(perm.size()) != rank) {
    return InvalidArgument("transpose expects a vector of size ", rank,
                           ". But input(1) is a vector of size ", perm.size());
  }
  std::vector<bool> seen(rank, false);
  Dims axes;
  for (const int64_t axis : perm) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument(axis, " is out of range [0 .. ", rank, ")");
    }
    axes.push_back(axis < 0 ? axis + rank : axis);
    seen[axes.back()] = true;
  }
  for (int i = 0; i < rank; ++i) {
    if (!seen[i]) {
      return InvalidArgument(i, " is missing from {", absl::StrJoin(perm, ","), "}");
    }
  }
  return axes;
}

// Returns true if only dimensions of size 1 move, so that the elements stay in the same order.
bool KeepsOrder(const Shape& shape, absl::Span<const int64_t> perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (shape.dim(axis) == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

template <class T>
void Conjugate(Tensor& tensor) {
  for (auto& z : tensor.mutable_flat<std::complex<T>>()) z = std::conj(z);
}

template <bool kConjugate>
class TransposeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const Dims given, IntVector(ctx.input(1), "perm"));
    ASSIGN_OR_RETURN(const Dims perm, Permutation(given, x.rank()));
    Dims dims;
    for (const int64_t axis : perm) dims.push_back(x.dim(axis));
    const Shape shape(dims);
    const bool conjugate = kConjugate && IsComplex(x.dtype());
    if (!conjugate && KeepsOrder(x.shape(), perm)) {
      ctx.SetOutput(0, ctx.TakeInput(0).Reshaped(shape));
      return OkStatus();
    }
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &y));
    const Dims from = DenseStrides(x.shape().dims()), to = DenseStrides(dims);
    StridedCopy copy;
    for (int i = 0; i < shape.rank(); ++i) copy.Add(dims[i], from[perm[i]], to[i]);
    CopyStrided(x.dtype(), copy, x.raw_data(), y->mutable_raw_data(), ctx.threads());
    if (conjugate && x.dtype() == DType::kComplex64) Conjugate<float>(*y);
    if (conjugate && x.dtype() == DType::kComplex128) Conjugate<double>(*y);
    return OkStatus();
  }
};

Status TransposeShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape vector, s.WithRank(1, 1));
  const PartialShape& x = s.input(0);
  const int64_t rank = x.known_rank() ? x.rank() : vector.dim(0);
  if (rank < 0) return OkStatus();
  if (rank > kMaxRank) return InvalidArgument("perm has ", rank, " elements");
  std::vector<int64_t> given;
  if (!s.ConstantInts(1, &given)) {
    s.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(rank)));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Dims perm, Permutation(given, static_cast<int>(rank)));
  PartialShape y = PartialShape::UnknownOfRank(static_cast<int>(rank));
  for (int i = 0; x.known_rank() && i < rank; ++i) y.set_dim(i, x.dim(perm[i]));
  s.set_output(0, y);
  return OkStatus();
}

std::vector<Gradient> TransposeGradient(const GradientScope& g) {
  return {Transpose(g.dy(), Call("InvertPermutation", {g.x(1)})), Gradient()};
}
std::vector<Gradient> ConjugateTransposeGradient(const GradientScope& g) {
  return {Call("ConjugateTranspose", {g.dy(), Call("InvertPermutation", {g.x(1)})}), Gradient()};
}

template <class T>
class InvertPermutationKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 1) return InvalidArgument("invert_permutation expects a 1D vector.");
    const int64_t size = x.dim(0);
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &y));
    auto inverse = y->mutable_flat<T>();
    std::fill(inverse.begin(), inverse.end(), T(-1));
    for (int64_t i = 0; i < size; ++i) {
      const T to = x.data<T>()[i];
      if (to < 0 || to >= size) return InvalidArgument(to, " is not between 0 and ", size);
      if (inverse[to] >= 0) return InvalidArgument(to, " is duplicated in the input.");
      inverse[to] = static_cast<T>(i);
    }
    return OkStatus();
  }
};

Status InvertPermutationShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape x, s.WithRank(0, 1));
  s.set_output(0, std::move(x));
  return OkStatus();
}

OP(Transpose) {
  return {
      .doc = "Permutes the dimensions of x: y.shape[i] = x.shape[perm[i]].",
      .inputs = {{"x", "T"}, {"perm", "Tperm"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kAnyType}, {"Tperm", kIndex, DType::kInt32}},
      .shape = TransposeShape,
      .gradient = TransposeGradient,
      .examples = {{.inputs = {{{{2, 3, 4}}}, {{{3}, {2, 0, 1}}}}}},
  };
}

OP(ConjugateTranspose) {
  return {
      .doc = "The same as Transpose, with the complex conjugate of every element.",
      .inputs = {{"x", "T"}, {"perm", "Tperm"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kAllTypes}, {"Tperm", kIndex, DType::kInt32}},
      .shape = TransposeShape,
      .gradient = ConjugateTransposeGradient,
      .examples = {{.inputs = {{{{2, 3, 4}}}, {{{3}, {2, 0, 1}}}}}},
  };
}

OP(InvertPermutation) {
  return {
      .doc = "Returns the inverse of the permutation x: y[x[i]] = i.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "T"}},
      .types = {{"T", kIndex, DType::kInt32}},
      .shape = InvertPermutationShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{4}, {2, 0, 3, 1}}}}}},
  };
}

KERNEL_ANY_TYPE(Transpose, TransposeKernel<false>);
KERNEL_ANY_TYPE(ConjugateTranspose, TransposeKernel<true>);
KERNEL(InvertPermutation, InvertPermutationKernel, int32_t, int64_t);

}  // namespace
}  // namespace penstock
