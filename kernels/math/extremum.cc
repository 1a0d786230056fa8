// SPDX-License-Identifier: Apache-2.0
//
// Max, Min, All, Any: reductions along axes.
#include "core/tensor/type_lists.h"
#include "kernels/engine/reduction.h"
#include "kernels/math/reduction_op.h"

namespace penstock {
namespace {

template <class T>
DEVICE_FN constexpr T Least() {
  if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <class T>
DEVICE_FN constexpr T Greatest() {
  if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

struct MaxReducer {
  static constexpr bool kReturnsSingleElement = true;
  template <class T>
  using Accumulator = T;
  template <class A>
  DEVICE_FN static A Identity() {
    return Least<A>();
  }
  // The result is NaN if any element is.
  template <class A>
  DEVICE_FN static A Add(A a, A x) {
    return x > a || x != x ? x : a;
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return Add(a, b);
  }
  template <class T>
  DEVICE_FN static T Finish(T a, int64_t) {
    return a;
  }
};

struct MinReducer : MaxReducer {
  template <class A>
  DEVICE_FN static A Identity() {
    return Greatest<A>();
  }
  template <class A>
  DEVICE_FN static A Add(A a, A x) {
    return x < a || x != x ? x : a;
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return Add(a, b);
  }
};

struct AllReducer : MaxReducer {
  template <class A>
  DEVICE_FN static A Identity() {
    return true;
  }
  template <class A>
  DEVICE_FN static A Add(A a, A x) {
    return a & x;
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return a & b;
  }
};

struct AnyReducer : MaxReducer {
  template <class A>
  DEVICE_FN static A Identity() {
    return false;
  }
  template <class A>
  DEVICE_FN static A Add(A a, A x) {
    return a | x;
  }
  template <class A>
  DEVICE_FN static A Merge(A a, A b) {
    return a | b;
  }
};

// Returns dy, split equally among the elements that equal the extremum.
Gradients ExtremumGradient(const GradientScope& g) {
  const Output is_it = Cast(Equal(WithKeptDims(g, g.y()), g.x()), g.dtype());
  const Output count = Sum(is_it, g.x(1), g.attr<bool>("keep_dims"));
  return {is_it * WithKeptDims(g, g.dy() / count), Gradient()};
}

}  // namespace

OP(Max) {
  return ReductionOp("The largest element along axes; NaN if one of them is NaN.", kReal,
                     ExtremumGradient);
}
KERNEL_HOST_ARGS(("reduction_indices"), Max, Reduction<MaxReducer>::Kernel, REAL_TYPES);

OP(Min) {
  return ReductionOp("The smallest element along axes; NaN if one of them is NaN.", kReal,
                     ExtremumGradient);
}
KERNEL_HOST_ARGS(("reduction_indices"), Min, Reduction<MinReducer>::Kernel, REAL_TYPES);

OP(All) { return LogicalReductionOp("True where all elements along axes are true."); }
KERNEL_DEF({.op = "All",
            .host_args = {"reduction_indices"},
            .make = Make<Reduction<AllReducer>::Kernel<bool>>});
OP(Any) { return LogicalReductionOp("True where at least one element along axes is true."); }
KERNEL_DEF({.op = "Any",
            .host_args = {"reduction_indices"},
            .make = Make<Reduction<AnyReducer>::Kernel<bool>>});

}  // namespace penstock
