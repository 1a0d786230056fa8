// SPDX-License-Identifier: Apache-2.0
//
// Ceil, Floor, Round, Rint, NextAfter; and IsNan, IsInf, IsFinite.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct CeilFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return std::ceil(x);
  }
};

struct FloorFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return std::floor(x);
  }
};

// Halves are rounded to the even neighbour.
struct RoundFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      return std::rint(x);
    }
  }
};

struct NextAfterFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    return std::nextafter(x, y);
  }
};

// As in TensorFlow, the gradient of x1 is dy, and x2 has none.
OpDef NextAfterOp() {
  OpDef op = BinaryOp("The next representable number after x1 in the direction of x2.",
                      {DType::kDouble, DType::kFloat}, [](const GradientScope& g) -> Gradients {
                        return {SumToShapeOf(g.dy(), g.x(0)), Gradient()};
                      });
  op.inputs = {{"x1", "T"}, {"x2", "T"}};
  op.outputs = {{"output", "T"}};
  op.types = {{"T", {DType::kDouble, DType::kFloat}, DType::kFloat}};
  return op;
}

struct IsNanFn {
  template <class T>
  DEVICE_FN bool operator()(T x) const {
    return x != x;
  }
};

struct IsInfFn {
  template <class T>
  DEVICE_FN bool operator()(T x) const {
    return std::abs(x) == T(INFINITY);
  }
};

struct IsFiniteFn {
  template <class T>
  DEVICE_FN bool operator()(T x) const {
    return std::abs(x) < T(INFINITY);
  }
};

}  // namespace

OP(Ceil) { return UnaryOp("The smallest integer not less than x.", kFloating, NoGradient); }
KERNEL(Ceil, UnaryElementwise<CeilFn>::Kernel, FLOATING_TYPES);
OP(Floor) { return UnaryOp("The largest integer not greater than x.", kFloating, NoGradient); }
KERNEL(Floor, UnaryElementwise<FloorFn>::Kernel, FLOATING_TYPES);
OP(Round) {
  return UnaryOp("The integer nearest to x; a half is rounded to the even integer.", kSignedReal,
                 NoGradient);
}
KERNEL(Round, UnaryElementwise<RoundFn>::Kernel, SIGNED_REAL_TYPES);
OP(Rint) {
  return UnaryOp("The integer nearest to x; a half is rounded to the even integer.", kFloating,
                 NoGradient);
}
KERNEL(Rint, UnaryElementwise<RoundFn>::Kernel, FLOATING_TYPES);

OP(NextAfter) { return NextAfterOp(); }
KERNEL(NextAfter, BinaryElementwise<NextAfterFn>::Kernel, float, double);

OP(IsNan) { return UnaryOpTo("bool", "True where x is NaN.", kFloating, NoGradient); }
KERNEL(IsNan, UnaryElementwise<IsNanFn>::Kernel, FLOATING_TYPES);
OP(IsInf) { return UnaryOpTo("bool", "True where x is infinite.", kFloating, NoGradient); }
KERNEL(IsInf, UnaryElementwise<IsInfFn>::Kernel, FLOATING_TYPES);
OP(IsFinite) {
  return UnaryOpTo("bool", "True where x is a finite number.", kFloating, NoGradient);
}
KERNEL(IsFinite, UnaryElementwise<IsFiniteFn>::Kernel, FLOATING_TYPES);

}  // namespace penstock
