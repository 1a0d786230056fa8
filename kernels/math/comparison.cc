// SPDX-License-Identifier: Apache-2.0
//
// The ops Less, LessEqual, Greater, GreaterEqual, Maximum, Minimum.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct LessFn {
  template <class T>
  DEVICE_FN bool operator()(T x, T y) const {
    return x < y;
  }
};

struct LessEqualFn {
  template <class T>
  DEVICE_FN bool operator()(T x, T y) const {
    return x <= y;
  }
};

struct GreaterFn {
  template <class T>
  DEVICE_FN bool operator()(T x, T y) const {
    return x > y;
  }
};

struct GreaterEqualFn {
  template <class T>
  DEVICE_FN bool operator()(T x, T y) const {
    return x >= y;
  }
};

// The result is NaN if an operand is.
struct MaximumFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    return x > y || x != x ? x : y;
  }
};

struct MinimumFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    return x < y || x != x ? x : y;
  }
};

// Passes dy to the operand that was chosen: the left one where `left_taken`, else the right one.
// Callers count equal operands as left.
Gradients PickedGradient(const GradientScope& g, Output left_taken) {
  const Output zero = ZerosLike(g.dy());
  return SumToInputs(g, Select(left_taken, g.dy(), zero), Select(left_taken, zero, g.dy()));
}

}  // namespace

OP(Less) { return Comparison("True where x < y.", kReal); }
KERNEL(Less, BinaryElementwise<LessFn>::Kernel, REAL_TYPES);
OP(LessEqual) { return Comparison("True where x <= y.", kReal); }
KERNEL(LessEqual, BinaryElementwise<LessEqualFn>::Kernel, REAL_TYPES);
OP(Greater) { return Comparison("True where x > y.", kReal); }
KERNEL(Greater, BinaryElementwise<GreaterFn>::Kernel, REAL_TYPES);
OP(GreaterEqual) { return Comparison("True where x >= y.", kReal); }
KERNEL(GreaterEqual, BinaryElementwise<GreaterEqualFn>::Kernel, REAL_TYPES);

OP(Maximum) {
  return CommutativeOp("The larger of x and y; NaN if either is NaN.", kReal,
                       [](const GradientScope& g) -> Gradients {
                         return PickedGradient(g, GreaterEqual(g.x(0), g.x(1)));
                       });
}
KERNEL(Maximum, BinaryElementwise<MaximumFn>::Kernel, REAL_TYPES);

OP(Minimum) {
  return CommutativeOp("The smaller of x and y; NaN if either is NaN.", kReal,
                       [](const GradientScope& g) -> Gradients {
                         return PickedGradient(g, LessEqual(g.x(0), g.x(1)));
                       });
}
KERNEL(Minimum, BinaryElementwise<MinimumFn>::Kernel, REAL_TYPES);

}  // namespace penstock
