// SPDX-License-Identifier: Apache-2.0
//
// Incomplete gamma and beta functions: Igamma, Igammac, IgammaGradA, RandomGammaGrad, Betainc. The
// functions are Eigen's.
#include <unsupported/Eigen/SpecialFunctions>

#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct IgammaFn {
  static constexpr double kNanos = 200;
  template <class T>
  T operator()(T a, T x) const {
    return Eigen::numext::igamma(a, x);
  }
};

struct IgammacFn {
  static constexpr double kNanos = 200;
  template <class T>
  T operator()(T a, T x) const {
    return Eigen::numext::igammac(a, x);
  }
};

struct IgammaGradAFn {
  static constexpr double kNanos = 400;
  template <class T>
  T operator()(T a, T x) const {
    return Eigen::numext::igamma_der_a(a, x);
  }
};

struct RandomGammaGradFn {
  static constexpr double kNanos = 400;
  template <class T>
  T operator()(T alpha, T sample) const {
    return Eigen::numext::gamma_sample_der_alpha(alpha, sample);
  }
};

// The operands have the same shape, or are scalars.
template <class T>
class BetaincKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Shape shape;
    for (int i = 0; i < 3; ++i) {
      const Shape& operand = ctx.input(i).shape();
      if (operand.rank() == 0) continue;
      if (shape.rank() != 0 && !(shape == operand)) {
        return InvalidArgument("a, b and x must be scalars or of one shape; shapes ",
                               shape.ToString(), " and ", operand.ToString());
      }
      shape = operand;
    }
    Tensor* z;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &z));
    const T *a = ctx.input(0).data<T>(), *b = ctx.input(1).data<T>(), *x = ctx.input(2).data<T>();
    const int64_t step_a = ctx.input(0).rank() != 0, step_b = ctx.input(1).rank() != 0,
                  step_x = ctx.input(2).rank() != 0;
    T* out = z->mutable_data<T>();
    ctx.threads().ParallelFor(shape.num_elements(), 400, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out[i] = Eigen::numext::betainc(a[i * step_a], b[i * step_b], x[i * step_x]);
      }
    });
    return OkStatus();
  }
};

Status BetaincShape(ShapeScope& s) {
  PartialShape shape = PartialShape::Scalar();
  for (int i = 0; i < 3; ++i) {
    const PartialShape& operand = s.input(i);
    if (!operand.known_rank()) return UnknownShape(s);
    if (operand.rank() == 0) continue;
    ASSIGN_OR_RETURN(shape, shape.rank() == 0 ? operand : shape.Merge(operand));
  }
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Output Lgamma(Output x) { return Call("Lgamma", {x}); }

// Returns `sign` times the gradient of Igamma.
Gradients IgammaGradient(const GradientScope& g, double sign) {
  const Output a = g.x(0), x = g.x(1), dy = g.dy() * sign;
  const Output da = Call("IgammaGradA", {a, x});
  const Output dx = Exp((a - 1.0) * Log(x) - x - Lgamma(a));
  return SumToInputs(g, dy * da, dy * dx);
}

Gradients BetaincGradient(const GradientScope& g) {
  const Output a = g.x(0), b = g.x(1), x = g.x(2);
  const Output log_beta = Lgamma(a) + Lgamma(b) - Lgamma(a + b);
  const Output dx = Exp((b - 1.0) * Call("Log1p", {-x}) + Call("Xlogy", {a - 1.0, x}) - log_beta);
  return {Gradient(), Gradient(), SumToShapeOf(g.dy() * dx, x)};
}

// Returns `op` with these argument names.
OpDef Named(const char* a, const char* b, const char* z, OpDef op) {
  op.inputs = {{a, "T"}, {b, "T"}};
  op.outputs = {{z, "T"}};
  return op;
}

// Returns examples whose gradients are not checked, because the derivative with respect to `a`
// cannot be differentiated again.
std::vector<Example> FirstOrderOnly() {
  return {{.inputs = {{{{2, 3}}}, {{{3}}}}, .check_gradient = false},
          {.inputs = {{{{2, 3}}}, {{{2, 3}}}}, .check_gradient = false}};
}
const DTypes kWideFloats = {DType::kFloat, DType::kDouble};

}  // namespace

OP(Igamma) {
  return Named("a", "x", "z",
               WithExamples(FirstOrderOnly(),
                            BinaryOp("The lower regularized incomplete Gamma function P(a, x).",
                                     kFloating, [](const GradientScope& g) -> Gradients {
                                       return IgammaGradient(g, 1);
                                     })));
}
KERNEL(Igamma, BinaryElementwise<IgammaFn>::Kernel, FLOATING_TYPES);

OP(Igammac) {
  return Named(
      "a", "x", "z",
      WithExamples(
          FirstOrderOnly(),
          BinaryOp("The upper regularized incomplete Gamma function, 1 - P(a, x).", kFloating,
                   [](const GradientScope& g) -> Gradients { return IgammaGradient(g, -1); })));
}
KERNEL(Igammac, BinaryElementwise<IgammacFn>::Kernel, FLOATING_TYPES);

OP(IgammaGradA) {
  return Named("a", "x", "z",
               BinaryOp("The derivative of Igamma(a, x) with respect to a.", kWideFloats, nullptr));
}
KERNEL(IgammaGradA, BinaryElementwise<IgammaGradAFn>::Kernel, float, double);

OP(RandomGammaGrad) {
  return Named(
      "alpha", "sample", "output",
      BinaryOp("The derivative of a Gamma-distributed sample with respect to the shape parameter "
               "alpha.",
               kWideFloats, nullptr));
}
KERNEL(RandomGammaGrad, BinaryElementwise<RandomGammaGradFn>::Kernel, float, double);

OP(Betainc) {
  return {
      .doc =
          "The regularized incomplete beta integral I_x(a, b). It has no gradient for a and "
          "b.",
      .inputs = {{"a", "T"}, {"b", "T"}, {"x", "T"}},
      .outputs = {{"z", "T"}},
      .types = {{"T", kWideFloats}},
      .shape = BetaincShape,
      .gradient = BetaincGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{}}}, {{{2, 3}}}}, .check_gradient = false}},
  };
}
KERNEL(Betainc, BetaincKernel, float, double);

}  // namespace penstock
