// SPDX-License-Identifier: Apache-2.0
//
// The ops Add, AddV2, Sub, Mul, MulNoNan, SquaredDifference. Integers wrap around.
#include <string>

#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/add.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct SubFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
    } else {
      return x - y;
    }
  }
};

struct MulFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
    } else {
      return x * y;
    }
  }
};

struct MulNoNanFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    const T product = x * y;
    return y == T(0) ? T(0) : product;
  }
};

struct SquaredDifferenceFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    const T d = SubFn()(x, y);
    if constexpr (kIsComplex<T>) {
      return T(d.real() * d.real() + d.imag() * d.imag());
    } else {
      return MulFn()(d, d);
    }
  }
};

Gradients AddGradient(const GradientScope& g) { return SumToInputs(g, g.dy(), g.dy()); }

}  // namespace

OP(AddV2) {
  return {
      .doc = "z = x + y.",
      .inputs = {{"x", "T"}, {"y", "T"}},
      .outputs = {{"z", "T"}},
      .types = {{"T", kNumber}},
      .shape = BroadcastShape,
      .gradient = AddGradient,
      .commutative = true,
      .aggregate = true,
      .reuses = Reuse::kAny,
  };
}
KERNEL(AddV2, BinaryElementwise<AddFn>::Kernel, NUMBER_TYPES);

OP(Add) {
  return BinaryOp("z = x + y; strings are concatenated.", TypesOf<NUMBER_TYPES, std::string>(),
                  AddGradient);
}
KERNEL(Add, BinaryElementwise<AddFn>::Kernel, NUMBER_TYPES);
#if !defined(PENSTOCK_CUDA_DEVICE)
KERNEL(Add, BinaryElementwise<AddFn>::Kernel, std::string);
#endif

OP(Sub) {
  return BinaryOp("z = x - y.", kNumber, [](const GradientScope& g) -> Gradients {
    return SumToInputs(g, g.dy(), -g.dy());
  });
}
KERNEL(Sub, BinaryElementwise<SubFn>::Kernel, NUMBER_TYPES);

OP(Mul) {
  return CommutativeOp("z = x * y.", kNumber, [](const GradientScope& g) -> Gradients {
    return SumToInputs(g, g.dy() * Conj(g.x(1)), Conj(g.x(0)) * g.dy());
  });
}
KERNEL(Mul, BinaryElementwise<MulFn>::Kernel, NUMBER_TYPES);

OP(MulNoNan) {
  return BinaryOp("z = x * y, but zero wherever y is zero, even if x is infinite or NaN.",
                  kFloatingOrComplex, [](const GradientScope& g) -> Gradients {
                    return SumToInputs(g, Call("MulNoNan", {g.dy(), Conj(g.x(1))}),
                                       Call("MulNoNan", {Conj(g.x(0)), g.dy()}));
                  });
}
KERNEL(MulNoNan, BinaryElementwise<MulNoNanFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(SquaredDifference) {
  return CommutativeOp("z = (x - y)^2; of complex numbers |x - y|^2.", kNumber,
                       [](const GradientScope& g) -> Gradients {
                         const Output dx = (2.0 * g.dy()) * (g.x(0) - g.x(1));
                         return SumToInputs(g, dx, -dx);
                       });
}
KERNEL(SquaredDifference, BinaryElementwise<SquaredDifferenceFn>::Kernel, NUMBER_TYPES);

}  // namespace penstock
