// SPDX-License-Identifier: Apache-2.0
//
// Ops that combine two sparse tensors of one shape entry by entry: SparseAdd, SparseAddGrad,
// SparseSparseMaximum, SparseSparseMinimum.
#include <complex>

#include "core/tensor/type_lists.h"
#include "kernels/array/elements.h"
#include "kernels/engine/functor.h"
#include "kernels/math/add.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

struct Pair {
  SparseTensor a, b;

  static StatusOr<Pair> Make(const KernelContext& ctx) {
    ASSIGN_OR_RETURN(SparseTensor a, SparseTensor::FromInputs(ctx, 0, "a"));
    ASSIGN_OR_RETURN(SparseTensor b, SparseTensor::FromInputs(ctx, 3, "b"));
    if (a.rank() != b.rank()) {
      return InvalidArgument("Operands must have the same ranks: ", a.rank(), " and ", b.rank());
    }
    for (int d = 0; d < a.rank(); ++d) {
      if (a.shape()[d] != b.shape()[d]) {
        return InvalidArgument("Operands' shapes do not match: got ", a.shape()[d], " and ",
                               b.shape()[d], " for dimension ", d);
      }
    }
    return Pair{std::move(a), std::move(b)};
  }

  // Calls fn(i, j) for every place at which a or b has an entry, in the order of the places. i is
  // the number of a's entry at the place, j the number of b's entry; -1 if there is none.
  template <class Fn>
  void ForEachPlace(Fn fn) const {
    Merge(a.indices(), b.indices(), fn);
  }

  // Like ForEachPlace, for two tensors of indices.
  template <class Fn>
  static void Merge(const Tensor& a, const Tensor& b, Fn fn) {
    const int64_t rank = a.dim(1);
    const auto place = [rank](const Tensor& t, int64_t i) {
      return Place(t.data<int64_t>() + i * rank, static_cast<size_t>(rank));
    };
    int64_t i = 0, j = 0;
    while (i < a.dim(0) || j < b.dim(0)) {
      const int order = i == a.dim(0) ? 1 : j == b.dim(0) ? -1 : Compare(place(a, i), place(b, j));
      fn(order <= 0 ? i : -1, order >= 0 ? j : -1);
      i += order <= 0;
      j += order >= 0;
    }
  }
};

// Writes the combined entries as a sparse tensor. `combine` returns false for an entry to leave
// out.
template <class T, class Combine>
Status WriteCombined(KernelContext& ctx, const Pair& pair, Combine combine) {
  const SparseTensor &a = pair.a, &b = pair.b;
  std::vector<int64_t> places, picks;
  ASSIGN_OR_RETURN(Tensor values, ctx.Temporary(a.dtype(), Shape{a.size() + b.size()}));
  int64_t n = 0;
  pair.ForEachPlace([&](int64_t i, int64_t j) {
    const T x = i < 0 ? T(0) : a.values().data<T>()[i], y = j < 0 ? T(0) : b.values().data<T>()[j];
    T result;
    if (!combine(x, y, &result)) return;
    values.mutable_data<T>()[n] = result;
    picks.push_back(n++);
    const Place place = i >= 0 ? a.place(i) : b.place(j);
    places.insert(places.end(), place.begin(), place.end());
  });
  return WriteEntries(ctx, 0, 1, places, a.rank(), values, picks);
}

template <class T>
struct MagnitudeOf {
  using type = T;
};
template <class F>
struct MagnitudeOf<std::complex<F>> {
  using type = F;
};
template <class T>
auto Magnitude(T x) {
  if constexpr (std::is_integral_v<T>) {  // the least integer stays as it is, as in Abs
    return x < 0 ? static_cast<T>(-static_cast<Wrapping<T>>(x)) : x;
  } else if constexpr (kIsHalf<T>) {
    return std::abs(float(x));
  } else {
    return static_cast<typename MagnitudeOf<T>::type>(std::abs(x));
  }
}

// Returns the threshold as a double, the type in which magnitudes are compared. InvalidArgument
// unless it is a scalar number.
StatusOr<double> Threshold(const Tensor& t) {
  if (t.rank() != 0) {
    return InvalidArgument("The magnitude threshold must be a scalar: got shape ",
                           t.shape().ToString());
  }
  switch (t.dtype()) {
#define CASE(T)     \
  case kDTypeOf<T>: \
    return static_cast<double>(t.scalar<T>())
    CASE(float);
    CASE(double);
    CASE(half);
    CASE(bfloat16);
    CASE(int8_t);
    CASE(int16_t);
    CASE(int32_t);
    CASE(int64_t);
    CASE(uint8_t);
    CASE(uint16_t);
    CASE(uint32_t);
    CASE(uint64_t);
#undef CASE
    default:
      return InvalidArgument("the threshold is of type ", Name(t.dtype()));
  }
}

// Leaves out sums whose magnitude is below the threshold.
template <class T>
class SparseAddKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Pair pair, Pair::Make(ctx));
    ASSIGN_OR_RETURN(const double threshold, Threshold(ctx.input(6)));
    RETURN_IF_ERROR(WriteVector(ctx, 2, pair.a.shape()));
    return WriteCombined<T>(ctx, pair, [threshold](T x, T y, T* sum) {
      using L = LoopType<T>;
      *sum = static_cast<T>(AddFn()(static_cast<L>(x), static_cast<L>(y)));
      return static_cast<double>(Magnitude(*sum)) >= threshold;
    });
  }
};

template <class T, bool kMaximum>
class SparseExtremumKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Pair pair, Pair::Make(ctx));
    RETURN_IF_ERROR(pair.a.CheckBounds());
    RETURN_IF_ERROR(pair.b.CheckBounds());
    return WriteCombined<T>(ctx, pair, [](T x, T y, T* best) {
      *best = (kMaximum ? x < y : y < x) ? y : x;
      return true;
    });
  }
};
template <class T>
using SparseMaximum = SparseExtremumKernel<T, true>;
template <class T>
using SparseMinimum = SparseExtremumKernel<T, false>;

// Gives each entry of a and b the gradient of the sum at its place, or zero if the sum has no entry
// there.
class SparseAddGradKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor &grads = ctx.input(0), &sum = ctx.input(3);
    for (int i = 1; i <= 3; ++i) {
      if (ctx.input(i).rank() != 2 || sum.rank() != 2 || ctx.input(i).dim(1) != sum.dim(1)) {
        return InvalidArgument(
            "a_indices, b_indices and sum_indices must be matrices with as many "
            "columns: shapes ",
            ctx.input(i).shape().ToString(), " and ", sum.shape().ToString());
      }
    }
    if (grads.rank() != 1 || grads.dim(0) != sum.dim(0)) {
      return InvalidArgument("backprop_val_grad must have one element per row of sum_indices, ",
                             sum.dim(0), "; has shape ", grads.shape().ToString());
    }
    for (int side : {0, 1}) {
      const Tensor& indices = ctx.input(1 + side);
      Tensor* out;
      RETURN_IF_ERROR(ctx.Allocate(side, Shape{indices.dim(0)}, &out));
      ZeroElements(grads.dtype(), out->mutable_raw_data(), indices.dim(0));
      Pair::Merge(indices, sum, [&](int64_t i, int64_t j) {
        if (i < 0 || j < 0) return;
        CopyElements(grads.dtype(), ElementAt(grads.raw_data(), grads.dtype(), j),
                     ElementAt(out->mutable_raw_data(), grads.dtype(), i), 1);
      });
    }
    return OkStatus();
  }
};

Status PairShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(int64_t rank, SparseInputRank(s, 0));
  ASSIGN_OR_RETURN(const int64_t other, SparseInputRank(s, 3));
  if (rank >= 0 && other >= 0 && rank != other) {
    return InvalidArgument("Operands must have the same ranks: ", rank, " and ", other);
  }
  SetSparseOutput(s, 0, -1, std::max(rank, other), s.num_outputs() == 3);
  return OkStatus();
}

Status AddGradShape(ShapeScope& s) {
  for (int side : {0, 1}) {
    ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(1 + side, 2));
    s.set_output(side, PartialShape{indices.known_rank() ? indices.dim(0) : -1});
  }
  return OkStatus();
}

Gradients SparseAddGradient(const GradientScope& g) {
  const Outputs values = CallN("SparseAddGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)});
  Gradients dx(7);
  dx[1] = values[0];
  dx[4] = values[1];
  return dx;
}

OpDef SparseExtremumOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = Join(SparseArgs("a"), SparseArgs("b")),
      .outputs = {{"output_indices", "int64"}, {"output_values", "T"}},
      .types = {{"T", kReal}},
      .shape = PairShape,
      .examples = {{.inputs = Join(SparseExample(), OtherSparseExample())}},
  };
}

}  // namespace

OP(SparseAdd) {
  return {
      .doc =
          "Adds two sparse tensors, and drops the entries of the sum whose magnitude is "
          "below thresh.",
      .inputs = Join(Join(SparseArgs("a"), SparseArgs("b")), {{"thresh", "Treal"}}),
      .outputs = SparseArgs("sum"),
      .types = {{"T", kNumber}, {"Treal", kReal}},
      .shape = PairShape,
      .gradient = SparseAddGradient,
      // The example's gradient is not checked, because the gradient op has no gradient.
      .examples = {{.inputs =
                        Join(Join(SparseExample(), OtherSparseExample()), ExampleArgs{{{{}, {0}}}}),
                    .check_gradient = false}},
  };
}
KERNEL(SparseAdd, SparseAddKernel, NUMBER_TYPES);

OP(SparseAddGrad) {
  return {
      .doc = "The gradients of SparseAdd for the values of its operands.",
      .inputs = {{"backprop_val_grad", "T"},
                 {"a_indices", "int64"},
                 {"b_indices", "int64"},
                 {"sum_indices", "int64"}},
      .outputs = {{"a_val_grad", "T"}, {"b_val_grad", "T"}},
      .types = {{"T", kNumber}},
      .shape = AddGradShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}},
                               {{{2, 2}, {0, 0, 0, 2}}},
                               {{{1, 2}, {1, 1}}},
                               {{{3, 2}, {0, 0, 0, 2, 1, 1}}}}}},
  };
}
KERNEL_ANY_TYPE(SparseAddGrad, SparseAddGradKernel);

OP(SparseSparseMaximum) {
  return SparseExtremumOp(
      "Returns the larger of two sparse tensors at each index where either has an "
      "entry; a missing entry counts as zero.");
}

OP(SparseSparseMinimum) {
  return SparseExtremumOp(
      "Returns the smaller of two sparse tensors at each index where either has an "
      "entry; a missing entry counts as zero.");
}
KERNEL(SparseSparseMaximum, SparseMaximum, REAL_TYPES);
KERNEL(SparseSparseMinimum, SparseMinimum, REAL_TYPES);

}  // namespace penstock
