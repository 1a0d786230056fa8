// SPDX-License-Identifier: Apache-2.0
//
// Complex, Real, Imag, ComplexAbs, Angle, Conj: complex numbers and their components.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct ComplexFn {
  template <class T>
  DEVICE_FN LoopComplex<T> operator()(T re, T im) const {
    return {re, im};
  }
};

struct RealFn {
  template <class T>
  DEVICE_FN Real<T> operator()(T x) const {
    return x.real();
  }
};

struct ImagFn {
  template <class T>
  DEVICE_FN Real<T> operator()(T x) const {
    return x.imag();
  }
};

struct ComplexAbsFn {
  static constexpr double kNanos = 3;
  template <class T>
  DEVICE_FN Real<T> operator()(T x) const {
    return std::hypot(x.real(), x.imag());
  }
};

struct AngleFn {
  static constexpr double kNanos = 1;
  template <class T>
  DEVICE_FN Real<T> operator()(T x) const {
    return std::atan2(x.imag(), x.real());
  }
};

struct ConjFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return T(x.real(), -x.imag());
  }
};

Output ToComplex(Output re, Output im) {
  const DType type = re.dtype() == DType::kFloat ? DType::kComplex64 : DType::kComplex128;
  return Call("Complex", {re, im}, {{"Tout", type}});
}
Output ComponentOf(const char* op, Output x) {
  const DType type = x.dtype() == DType::kComplex64 ? DType::kFloat : DType::kDouble;
  return Call(op, {x}, {{"Tout", type}});
}

// Returns examples for both pairs of a complex and a real type.
std::vector<Example> BothPrecisions(int num_inputs) {
  const std::vector<std::vector<ExampleTensor>> inputs(num_inputs, {{.shape = {2, 3}}});
  const bool from_real = num_inputs == 2;
  const auto example = [&](DType real, DType complex) -> Example {
    return {.inputs = inputs,
            .attrs = {{"T", from_real ? real : complex}, {"Tout", from_real ? complex : real}}};
  };
  return {example(DType::kFloat, DType::kComplex64), example(DType::kDouble, DType::kComplex128)};
}

OpDef PartOp(const char* doc, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "Tout"}},
      .types = {{"T", kComplex, DType::kComplex64},
                {"Tout", {DType::kFloat, DType::kDouble}, DType::kFloat}},
      .shape = SameShape,
      .gradient = std::move(gradient),
      .examples = BothPrecisions(1),
  };
}

}  // namespace

OP(Complex) {
  return {
      .doc = "The complex numbers real + i imag.",
      .inputs = {{"real", "T"}, {"imag", "T"}},
      .outputs = {{"out", "Tout"}},
      .types = {{"T", {DType::kFloat, DType::kDouble}, DType::kFloat},
                {"Tout", kComplex, DType::kComplex64}},
      .shape = BroadcastShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        return SumToInputs(g, ComponentOf("Real", g.dy()), ComponentOf("Imag", g.dy()));
      },
      .examples = BothPrecisions(2),
  };
}
KERNEL(Complex, BinaryElementwise<ComplexFn>::Kernel, float, double);

OP(Real) {
  return PartOp("The real part.", [](const GradientScope& g) -> Gradients {
    return {ToComplex(g.dy(), ZerosLike(g.dy()))};
  });
}
KERNEL(Real, UnaryElementwise<RealFn>::Kernel, COMPLEX_TYPES);

OP(Imag) {
  return PartOp("The imaginary part.", [](const GradientScope& g) -> Gradients {
    return {ToComplex(ZerosLike(g.dy()), g.dy())};
  });
}
KERNEL(Imag, UnaryElementwise<ImagFn>::Kernel, COMPLEX_TYPES);

OP(ComplexAbs) {
  return {
      .doc = "The absolute value of complex numbers.",
      .inputs = {{"x", "T"}},
      .outputs = {{"y", "Tout"}},
      .types = {{"T", kComplex, DType::kComplex64},
                {"Tout", {DType::kFloat, DType::kDouble}, DType::kFloat}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> Gradients {
        const Output zero = ZerosLike(g.dy());
        return {Call("DivNoNan", {ToComplex(g.dy(), zero) * g.x(), ToComplex(g.y(), zero)})};
      },
      .examples = BothPrecisions(1),
  };
}
KERNEL(ComplexAbs, UnaryElementwise<ComplexAbsFn>::Kernel, COMPLEX_TYPES);

OP(Angle) {
  return PartOp("The angle in the complex plane, in (-pi, pi].",
                [](const GradientScope& g) -> Gradients {
                  const Output x = g.x();
                  const Output turned = ToComplex(ComponentOf("Imag", x), ComponentOf("Real", x));
                  return {-ToComplex(g.dy(), ZerosLike(g.dy())) * Reciprocal(turned)};
                });
}
KERNEL(Angle, UnaryElementwise<AngleFn>::Kernel, COMPLEX_TYPES);

OP(Conj) {
  return {
      .doc = "The complex conjugate.",
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kComplex, DType::kComplex64}},
      .shape = SameShape,
      .gradient = [](const GradientScope& g) -> Gradients { return {Conj(g.dy())}; },
      .reuses = Reuse::kFirst,
  };
}
KERNEL(Conj, UnaryElementwise<ConjFn>::Kernel, COMPLEX_TYPES);

}  // namespace penstock
