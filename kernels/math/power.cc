// SPDX-License-Identifier: Apache-2.0
//
// The ops Square, Sqrt, Rsqrt, Reciprocal (also as Inv) and Pow, and the gradient ops of Sqrt,
// Rsqrt and Reciprocal.
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

template <class T>
DEVICE_FN T ConjOf(T x) {
  if constexpr (kIsComplex<T>) {
    return T(x.real(), -x.imag());
  } else {
    return x;
  }
}

struct SquareFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(x));
    } else {
      return x * x;
    }
  }
};

struct SqrtFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::sqrt;
    return sqrt(x);
  }
};

struct RsqrtFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    using std::sqrt;
    return T(1) / sqrt(x);
  }
};

struct ReciprocalFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return T(1) / x;
  }
};

// A zero gradient stays zero even if y is zero or infinite.
struct SqrtGradFn {
  template <class T>
  DEVICE_FN T operator()(T y, T dy) const {
    const T dx = T(0.5) * dy / ConjOf(y);
    return dy == T(0) ? T(0) : dx;
  }
};

struct RsqrtGradFn {
  template <class T>
  DEVICE_FN T operator()(T y, T dy) const {
    const T c = ConjOf(y);
    const T dx = T(-0.5) * (dy * c) * (c * c);
    return dy == T(0) ? T(0) : dx;
  }
};

struct ReciprocalGradFn {
  template <class T>
  DEVICE_FN T operator()(T y, T dy) const {
    const T c = ConjOf(y);
    return -dy * c * c;
  }
};

struct PowFn {
  static constexpr double kNanos = 2;
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      Wrapping<T> power = 1;
      Wrapping<T> base = x;
      for (; y > 0; y >>= 1, base *= base) {
        if (y & 1) power *= base;
      }
      return static_cast<T>(power);
    } else {
      using std::pow;
      return pow(x, y);
    }
  }
  template <class T>
  requires std::is_integral_v<T>
  static const char* Invalid(T y) {
    return y < 0 ? "Integers to negative integer powers are not allowed" : nullptr;
  }
};

Gradients ReciprocalGradient(const GradientScope& g) {
  return {Call("ReciprocalGrad", {g.y(), g.dy()})};
}

Gradients ReciprocalGradGradient(const GradientScope& g) {
  const Output y = Conj(g.x(0)), dy = g.x(1);
  return {Conj(g.dy()) * -2.0 * dy * y, Call("ReciprocalGrad", {y, g.dy()})};
}

Gradients PowGradient(const GradientScope& g) {
  const Output x = Conj(g.x(0)), y = Conj(g.x(1)), z = Conj(g.y());
  // Uses the logarithm of x only where it exists. For other x, z is not differentiable with respect
  // to y, and the gradient is zero.
  const Output zero = ZerosLike(x);
  const Output has_log = IsComplex(x.dtype()) ? LogicalNot(Equal(x, zero)) : Greater(x, zero);
  const Output log_x = Select(has_log, Log(Select(has_log, x, OnesLike(x))), zero);
  return SumToInputs(g, g.dy() * y * Pow(x, y - 1.0), g.dy() * z * log_x);
}

}  // namespace

OP(Square) {
  return UnaryOp("y = x^2.", kNumber, [](const GradientScope& g) -> Gradients {
    return {g.dy() * (2.0 * Conj(g.x()))};
  });
}
KERNEL(Square, UnaryElementwise<SquareFn>::Kernel, NUMBER_TYPES);

OP(Sqrt) {
  return UnaryOp("The square root of x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {Call("SqrtGrad", {g.y(), g.dy()})};
                 });
}
KERNEL(Sqrt, UnaryElementwise<SqrtFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(SqrtGrad) {
  return GradientOp("dy / (2 y): the gradient of Sqrt, from its output.", kFloatingOrComplex,
                    [](const GradientScope& g) -> Gradients {
                      const Output scaled = g.dy() / g.x(0);
                      return {-Conj(scaled) * g.y(), 0.5 * scaled};
                    });
}
KERNEL(SqrtGrad, BinaryElementwise<SqrtGradFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Rsqrt) {
  return UnaryOp("One divided by the square root of x.", kFloatingOrComplex,
                 [](const GradientScope& g) -> Gradients {
                   return {Call("RsqrtGrad", {g.y(), g.dy()})};
                 });
}
KERNEL(Rsqrt, UnaryElementwise<RsqrtFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(RsqrtGrad) {
  return GradientOp("dy * -y^3 / 2: the gradient of Rsqrt, from its output.", kFloatingOrComplex,
                    [](const GradientScope& g) -> Gradients {
                      const Output y = Conj(g.x(0)), dy = g.x(1);
                      return {-1.5 * Conj(g.dy()) * dy * Square(y), Call("RsqrtGrad", {y, g.dy()})};
                    });
}
KERNEL(RsqrtGrad, BinaryElementwise<RsqrtGradFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Reciprocal) { return UnaryOp("y = 1 / x.", kFloatingOrComplex, ReciprocalGradient); }
KERNEL(Reciprocal, UnaryElementwise<ReciprocalFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);
OP(Inv) {
  return UnaryOp("y = 1 / x. (The old name of Reciprocal.)", kFloatingOrComplex,
                 ReciprocalGradient);
}
KERNEL(Inv, UnaryElementwise<ReciprocalFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(ReciprocalGrad) {
  return GradientOp("-dy * y^2: the gradient of Reciprocal, from its output.", kFloatingOrComplex,
                    ReciprocalGradGradient);
}
KERNEL(ReciprocalGrad, BinaryElementwise<ReciprocalGradFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);
OP(InvGrad) {
  return GradientOp("-dy * y^2: the gradient of Inv, from its output.", kFloatingOrComplex,
                    ReciprocalGradGradient);
}
KERNEL(InvGrad, BinaryElementwise<ReciprocalGradFn>::Kernel, FLOATING_OR_COMPLEX_TYPES);

OP(Pow) {
  return BinaryOp("z = x^y. Integers may not have negative exponents.", kNumber, PowGradient);
}
KERNEL(Pow, BinaryElementwise<PowFn>::Kernel, NUMBER_TYPES);

}  // namespace penstock
