// SPDX-License-Identifier: Apache-2.0
//
// FloorMod, whose result has the sign of the divisor; Mod and TruncateMod, whose result has the
// sign of the dividend.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/division.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct TruncateModFn : ChecksDivisor {
  static constexpr double kNanos = 5;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return TruncatedRemainder(x, y);
    } else {
      return std::fmod(x, y);
    }
  }
};

struct FloorModFn : ChecksDivisor {
  static constexpr double kNanos = 5;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    const T remainder = TruncateModFn()(x, y);
    return remainder != 0 && (remainder < 0) != (y < 0) ? static_cast<T>(remainder + y) : remainder;
  }
};

template <const char* kQuotient>
Gradients ModGradient(const GradientScope& g) {
  return SumToInputs(g, g.dy(), g.dy() * -Call(kQuotient, {g.x(0), g.x(1)}));
}
constexpr char kFloorDiv[] = "FloorDiv";
constexpr char kTruncateDiv[] = "TruncateDiv";

}  // namespace

OP(FloorMod) {
  return BinaryOp("The remainder of the division rounded down: x - floor(x / y) * y.", kReal,
                  ModGradient<kFloorDiv>);
}
KERNEL(FloorMod, BinaryElementwise<FloorModFn>::Kernel, REAL_TYPES);

OP(Mod) {
  return BinaryOp("The remainder of the division rounded towards zero.", kReal,
                  ModGradient<kTruncateDiv>);
}
KERNEL(Mod, BinaryElementwise<TruncateModFn>::Kernel, REAL_TYPES);

OP(TruncateMod) {
  return BinaryOp("The remainder of the division rounded towards zero.", kReal,
                  ModGradient<kTruncateDiv>);
}
KERNEL(TruncateMod, BinaryElementwise<TruncateModFn>::Kernel, REAL_TYPES);

}  // namespace penstock
