// SPDX-License-Identifier: Apache-2.0
//
// The rectifiers and similar functions (Relu, Relu6, Elu, Selu, Softplus, Softsign) and their
// gradient ops.
#include <string>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/elementwise.h"

#define REAL_TYPES                                                                               \
  float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, \
      uint64_t
#define FLOATING_TYPES half, bfloat16, float, double

namespace penstock {
namespace {

// The comparisons are written so that the forward functions return NaN for NaN.
struct ReluFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6Fn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
};
struct EluFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return x < T(0) ? T(std::expm1(x)) : x;
  }
};
// Klambauer et al., "Self-Normalizing Neural Networks" (2017), equation 2 and appendix.
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;
struct SeluFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return x < T(0) ? T(kSeluScaleAlpha) * T(std::expm1(x)) : T(kSeluScale) * x;
  }
};
struct SoftplusFn {
  static constexpr double kNanos = 2;
  template <class T>
  DEVICE_FN T operator()(T x) const {
    // log(1 + e^x) without overflow for large x or loss of accuracy for small x.
    return (x > T(0) ? x : T(0)) + T(std::log1p(std::exp(x > T(0) ? -x : x)));
  }
};
struct SoftsignFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
};

// Functors of the gradient ops. Their arguments are the ops' inputs: (dy, x) or (dy, y).
struct ReluGradFn {
  template <class T>
  DEVICE_FN T operator()(T dy, T x) const {
    return x > T(0) ? dy : T(0);
  }
};
struct Relu6GradFn {
  template <class T>
  DEVICE_FN T operator()(T dy, T x) const {
    return x > T(0) && x < T(6) ? dy : T(0);
  }
};
struct EluGradFn {
  template <class T>
  DEVICE_FN T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + T(1)) : dy;
  }
};
struct SeluGradFn {
  template <class T>
  DEVICE_FN T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + T(kSeluScaleAlpha)) : dy * T(kSeluScale);
  }
};
struct SoftplusGradFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN T operator()(T dy, T x) const {
    return dy / (T(std::exp(-x)) + T(1));
  }
};
struct SoftsignGradFn {
  template <class T>
  DEVICE_FN T operator()(T dy, T x) const {
    const T d = T(1) + (x < T(0) ? -x : x);
    return dy / (d * d);
  }
};

// Makes the kernels of gradient ops, which, unlike arithmetic ops, do not broadcast.
template <class Fn>
struct EqualShapes {
  template <class T>
  struct Kernel final : BinaryKernel {
    static constexpr BinaryLoop kLoop = BinaryLoopOf<Fn, T>();
    Kernel() : BinaryKernel(kLoop) {}
    bool AcceptsShapes(const Shape&, absl::Span<const Shape* const> inputs) const override {
      return *inputs[0] == *inputs[1];
    }
    Status Compute(KernelContext& ctx) override {
      if (ctx.input(0).shape() != ctx.input(1).shape()) {
        return InvalidArgument("inputs must have the same shape, got ",
                               ctx.input(0).shape().ToString(), " and ",
                               ctx.input(1).shape().ToString());
      }
      return BinaryKernel::Compute(ctx);
    }
  };
};

Status EqualShapesShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape both, s.input(0).Merge(s.input(1)));
  s.set_output(0, both);
  return OkStatus();
}

// Return a gradient function that calls the gradient op `op` with (dy, x) or (dy, y).
GradientFn GradientFromX(const char* op) {
  return [op](const GradientScope& g) -> std::vector<Gradient> {
    return {Call(op, {g.dy(), g.x()})};
  };
}
GradientFn GradientFromY(const char* op) {
  return [op](const GradientScope& g) -> std::vector<Gradient> {
    return {Call(op, {g.dy(), g.y()})};
  };
}
// Returns the gradient of a gradient op of a piecewise linear function. That op is linear in dy, so
// the gradient of dy is a call of `op`; its derivative by x is zero, so x has no gradient.
GradientFn LinearInDy(const char* op) {
  return [op](const GradientScope& g) -> std::vector<Gradient> {
    return {Call(op, {g.dy(), g.x(1)}), Gradient()};
  };
}

OpDef Activation(const char* doc, const DTypes& types, GradientFn gradient) {
  return {.doc = doc,
          .inputs = {{"features", "T"}},
          .outputs = {{"activations", "T"}},
          .types = {{"T", types, DType::kFloat}},
          .shape = SameShape,
          .gradient = std::move(gradient),
          .reuses = Reuse::kFirst};
}
OpDef ActivationGradient(const char* of, const char* by, const DTypes& types, GradientFn gradient) {
  return {.doc = StrCat("The gradient of ", of, ": `gradients` are those of its output, `", by,
                        "` its ", by[0] == 'o' ? "output." : "input."),
          .inputs = {{"gradients", "T"}, {by, "T"}},
          .outputs = {{"backprops", "T"}},
          .types = {{"T", types, DType::kFloat}},
          .shape = EqualShapesShape,
          .gradient = std::move(gradient),
          .reuses = Reuse::kAny};
}

}  // namespace

OP(Relu) { return Activation("max(x, 0)", kReal, GradientFromY("ReluGrad")); }
KERNEL(Relu, UnaryElementwise<ReluFn>::Kernel, REAL_TYPES);
OP(ReluGrad) { return ActivationGradient("Relu", "features", kReal, LinearInDy("ReluGrad")); }
KERNEL(ReluGrad, EqualShapes<ReluGradFn>::Kernel, REAL_TYPES);

OP(Relu6) { return Activation("min(max(x, 0), 6)", kReal, GradientFromY("Relu6Grad")); }
KERNEL(Relu6, UnaryElementwise<Relu6Fn>::Kernel, REAL_TYPES);
OP(Relu6Grad) { return ActivationGradient("Relu6", "features", kReal, LinearInDy("Relu6Grad")); }
KERNEL(Relu6Grad, EqualShapes<Relu6GradFn>::Kernel, REAL_TYPES);

OP(Elu) {
  return Activation("x where x >= 0, else exp(x) - 1", kFloating, GradientFromY("EluGrad"));
}
KERNEL(Elu, UnaryElementwise<EluFn>::Kernel, FLOATING_TYPES);
OP(EluGrad) {
  return ActivationGradient("Elu", "outputs", kFloating,
                            [](const GradientScope& g) -> std::vector<Gradient> {
                              const Output negative = Less(g.x(1), ZerosLike(g.x(1)));
                              return {Call("EluGrad", {g.dy(), g.x(1)}),
                                      Select(negative, g.dy() * g.x(0), ZerosLike(g.dy()))};
                            });
}
KERNEL(EluGrad, EqualShapes<EluGradFn>::Kernel, FLOATING_TYPES);

OP(Selu) {
  return Activation("Elu, scaled so that means and variances are preserved", kFloating,
                    GradientFromY("SeluGrad"));
}
KERNEL(Selu, UnaryElementwise<SeluFn>::Kernel, FLOATING_TYPES);
OP(SeluGrad) {
  return ActivationGradient("Selu", "outputs", kFloating,
                            [](const GradientScope& g) -> std::vector<Gradient> {
                              const Output negative = Less(g.x(1), ZerosLike(g.x(1)));
                              return {Call("SeluGrad", {g.dy(), g.x(1)}),
                                      Select(negative, g.dy() * g.x(0), ZerosLike(g.dy()))};
                            });
}
KERNEL(SeluGrad, EqualShapes<SeluGradFn>::Kernel, FLOATING_TYPES);

OP(Softplus) { return Activation("log(1 + exp(x))", kFloating, GradientFromX("SoftplusGrad")); }
KERNEL(Softplus, UnaryElementwise<SoftplusFn>::Kernel, FLOATING_TYPES);
OP(SoftplusGrad) {
  return ActivationGradient(
      "Softplus", "features", kFloating, [](const GradientScope& g) -> std::vector<Gradient> {
        const Output s = Sigmoid(g.x(1));
        return {Call("SoftplusGrad", {g.dy(), g.x(1)}), g.dy() * g.x(0) * s * (1.0 - s)};
      });
}
KERNEL(SoftplusGrad, EqualShapes<SoftplusGradFn>::Kernel, FLOATING_TYPES);

OP(Softsign) { return Activation("x / (1 + |x|)", kFloating, GradientFromX("SoftsignGrad")); }
KERNEL(Softsign, UnaryElementwise<SoftsignFn>::Kernel, FLOATING_TYPES);
OP(SoftsignGrad) {
  return ActivationGradient("Softsign", "features", kFloating,
                            [](const GradientScope& g) -> std::vector<Gradient> {
                              const Output d = 1.0 + Abs(g.x(1));
                              return {Call("SoftsignGrad", {g.dy(), g.x(1)}),
                                      g.dy() * g.x(0) * Sign(g.x(1)) * -2.0 / (d * d * d)};
                            });
}
KERNEL(SoftsignGrad, EqualShapes<SoftsignGradFn>::Kernel, FLOATING_TYPES);

}  // namespace penstock
