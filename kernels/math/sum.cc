// SPDX-License-Identifier: Apache-2.0
//
// Sum, Mean, Prod: reductions along axes.
#include "core/tensor/type_lists.h"
#include "kernels/engine/reduction.h"
#include "kernels/math/reduction_op.h"
#include "kernels/math/sum_reducer.h"

namespace penstock {
namespace {

// The mean of integers is their exact sum, divided by their number and rounded towards zero.
template <class T>
struct MeanAccumulatorOf {
  using type = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
};
template <class T>
requires(!std::is_integral_v<T>) struct MeanAccumulatorOf<T> {
  using type = Wide<T>;
};

struct MeanReducer : SumReducer {
  template <class T>
  using Accumulator = typename MeanAccumulatorOf<T>::type;
  template <class T, class A>
  DEVICE_FN static T Finish(A a, int64_t count) {
    if constexpr (std::is_integral_v<T>) {
      return count == 0 ? T(0) : static_cast<T>(a / static_cast<A>(count));
    } else {
      return static_cast<T>(a / static_cast<Real<A>>(count));
    }
  }
  template <class A, class T>
  DEVICE_FN static A Add(A a, T x) {
    return AddWrapping(a, static_cast<A>(x));
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return AddWrapping(a, b);
  }

 private:
  template <class A>
  DEVICE_FN static A AddWrapping(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};

struct ProdReducer : SumReducer {
  template <class A>
  DEVICE_FN static A Identity() {
    return A(1);
  }
  template <class A, class T>
  DEVICE_FN static A Add(A a, T x) {
    return a * A(x);
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return a * b;
  }
};

// Returns the number of input elements per output element, in the type of `like`.
Output ElementsPerOutput(const GradientScope& g, Output like) {
  const PartialShape x = g.x().shape(), y = g.y().shape();
  if (x.fully_known() && y.fully_known()) {
    const int64_t outputs = std::max<int64_t>(1, y.ToShape().num_elements());
    return ConstantLike(like, static_cast<double>(x.ToShape().num_elements() / outputs));
  }
  const Output outputs = Maximum(SizeOf(g.y(), DType::kInt64), g.Const<int64_t>(1));
  return Cast(SizeOf(g.x(), DType::kInt64) / outputs, like.dtype());
}

Gradients SumGradient(const GradientScope& g) { return {BroadcastToInput(g, g.dy()), Gradient()}; }

Gradients MeanGradient(const GradientScope& g) {
  return {BroadcastToInput(g, g.dy() / ElementsPerOutput(g, g.dy())), Gradient()};
}

// Returns, for each factor, dy times the product of all other factors, computed as the product of
// those before it and those after it. (Dividing the total product by the factor would fail if it is
// zero.)
Gradients ProdGradient(const GradientScope& g) {
  const auto ints = [&](std::vector<int32_t> v) { return g.Const(Tensor::Vector<int32_t>(v)); };
  const Output x = g.x(), shape = ShapeOf(x), rank = RankOf(x);
  const Output zero = g.Const<int32_t>(0), one = g.Const<int32_t>(1);
  const Output axes = Reshape(Cast(g.x(1), DType::kInt32), ints({-1}));
  const Output reduced = Call("FloorMod", {axes + rank, rank});
  const Output kept = Call("ListDiff", {Range(zero, rank, one), reduced});

  // Transpose the reduced axes to the front and reshape to [reduced, kept].
  const Output order = ConcatV2({reduced, kept}, zero);
  const auto product_of = [&](Output dims) {
    return Call("Prod", {Gather(shape, dims, zero), zero}, {{"keep_dims", true}});
  };
  const Output turned = Transpose(x, order);
  const Output matrix = Reshape(turned, ConcatV2({product_of(reduced), product_of(kept)}, zero));
  const auto exclusive = [&](bool reverse) {
    return Call("Cumprod", {matrix, zero}, {{"exclusive", true}, {"reverse", reverse}});
  };
  const Output others = Reshape(Conj(exclusive(false)) * Conj(exclusive(true)), ShapeOf(turned));
  const Output back = Transpose(others, Call("InvertPermutation", {order}));
  return {BroadcastToInput(g, g.dy()) * Reshape(back, shape), Gradient()};
}

}  // namespace

OP(Sum) { return ReductionOp("The sum along axes.", kNumber, SumGradient); }
KERNEL_HOST_ARGS(("reduction_indices"), Sum, Reduction<SumReducer>::Kernel, NUMBER_TYPES);

OP(Mean) {
  return ReductionOp("The mean along axes; for integers, rounded towards zero.", kNumber,
                     MeanGradient);
}
KERNEL_HOST_ARGS(("reduction_indices"), Mean, Reduction<MeanReducer>::Kernel, NUMBER_TYPES);

OP(Prod) { return ReductionOp("The product along axes.", kNumber, ProdGradient); }
KERNEL_HOST_ARGS(("reduction_indices"), Prod, Reduction<ProdReducer>::Kernel, NUMBER_TYPES);

}  // namespace penstock
