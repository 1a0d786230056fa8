// SPDX-License-Identifier: Apache-2.0
//
// The ops Div, RealDiv, FloorDiv, TruncateDiv, DivNoNan.
#include "kernels/math/division.h"

#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct DivFn : ChecksDivisor {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return TruncatedQuotient(x, y);
    } else {
      return x / y;
    }
  }
};

struct FloorDivFn : ChecksDivisor {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = TruncatedQuotient(x, y);
      // If the signs differ and the remainder is not zero, subtract one to round down.
      const bool down = (x < 0) != (y < 0) && TruncatedRemainder(x, y) != 0;
      return static_cast<T>(quotient - down);
    } else {
      return std::floor(x / y);
    }
  }
};

struct TruncateDivFn : ChecksDivisor {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return TruncatedQuotient(x, y);
    } else {
      return std::trunc(x / y);
    }
  }
};

struct DivNoNanFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    const T quotient = x / y;
    return y == T(0) ? T(0) : quotient;
  }
};

Gradients DivGradient(const GradientScope& g) {
  const Output x = Conj(g.x(0)), y = Conj(g.x(1)), dy = g.dy();
  const auto divide = [](Output a, Output b) { return Call("RealDiv", {a, b}); };
  return SumToInputs(g, divide(dy, y), dy * divide(divide(-x, y), y));
}

}  // namespace

OP(RealDiv) { return BinaryOp("z = x / y.", kFloatingOrComplex, DivGradient); }
KERNEL(RealDiv, BinaryElementwise<DivFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Div) {
  return BinaryOp("z = x / y; for integers, rounded towards zero.", kNumber,
                  [](const GradientScope& g) -> Gradients {
                    return IsInteger(g.dtype()) ? NoGradient(g) : DivGradient(g);
                  });
}
KERNEL(Div, BinaryElementwise<DivFn>::Kernel, NUMBER_TYPES);

OP(FloorDiv) { return BinaryOp("z = x / y, rounded down.", kReal, NoGradient); }
KERNEL(FloorDiv, BinaryElementwise<FloorDivFn>::Kernel, REAL_TYPES);

OP(TruncateDiv) { return BinaryOp("z = x / y, rounded towards zero.", kReal, NoGradient); }
KERNEL(TruncateDiv, BinaryElementwise<TruncateDivFn>::Kernel, REAL_TYPES);

OP(DivNoNan) {
  return BinaryOp("z = x / y, but zero wherever y is zero.", kFloatingOrComplex,
                  [](const GradientScope& g) -> Gradients {
                    const Output x = Conj(g.x(0)), y = Conj(g.x(1));
                    const auto divide = [](Output a, Output b) { return Call("DivNoNan", {a, b}); };
                    return SumToInputs(g, divide(g.dy(), y), g.dy() * divide(divide(-x, y), y));
                  });
}
KERNEL(DivNoNan, BinaryElementwise<DivNoNanFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
