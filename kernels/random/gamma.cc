// SPDX-License-Identifier: Apache-2.0
//
// RandomGamma, StatelessRandomGammaV2 and V3: gamma-distributed numbers, by the method of G.
// Marsaglia and W. W. Tsang: A Simple Method for Generating Gamma Variables. ACM TOMS 26(3), 2000.
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/distributions.h"
#include "kernels/random/per_parameter.h"
#include "kernels/random/random_stream.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// Returns one number for the shape parameter `alpha` >= 0.
double Gamma(double alpha, Philox stream) {
  OneByOne<Normal<double>> normal;
  OneByOne<Uniform<double>> uniform;
  if (alpha == 1) return -std::log1p(-uniform.Next(stream));  // exponential
  // For alpha below 1, draws for alpha + 1 and multiplies by uniform^(1/alpha).
  const bool below_one = alpha < 1;
  const double d = alpha + (below_one ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  while (true) {
    const double x = normal.Next(stream);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = uniform.Next(stream);
    // In most cases the polynomial decides, which is cheaper than the logarithm below.
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return below_one ? d * v * std::pow(uniform.Next(stream), 1 / alpha) : d * v;
    }
  }
}

// Fills `output`, of shape [..., alphas].
template <class T>
void FillGamma(const Tensor& alphas, const Philox& stream, Tensor* output, Scheduler& threads) {
  T* out = output->mutable_data<T>();
  const T* alpha = alphas.data<T>();
  ForEachNumber(output->num_elements(), alphas.num_elements(), threads,
                [=](int64_t place, int64_t parameter, int64_t index) {
                  out[place] = static_cast<T>(
                      Gamma(static_cast<double>(alpha[parameter]), SectionOf(stream, index)));
                });
}

template <class T>
Status CheckAlphas(const Tensor& alphas) {
  for (const T alpha : alphas.flat<T>()) {
    // The comparison is negated, so that NaN is refused, too: for NaN, the rejection loop would
    // never end.
    if (!(static_cast<double>(alpha) >= 0)) {
      return InvalidArgument("alpha must be positive, got ", static_cast<double>(alpha));
    }
  }
  return OkStatus();
}

template <class T>
class RandomGammaKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, JoinedShape(ctx.input(0), ctx.input(1)));
    RETURN_IF_ERROR(CheckAlphas<T>(ctx.input(1)));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const Philox stream = stream_.ReserveForOutputs(shape.num_elements(), *ctx.step().env);
    FillGamma<T>(ctx.input(1), stream, output, ctx.threads());
    return OkStatus();
  }

 private:
  RandomStream stream_;
};

// Inputs: shape, seed, alpha, or shape, key, counter, alg, alpha.
template <class T>
class StatelessGammaKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& alphas = ctx.input(ctx.num_inputs() - 1);
    ASSIGN_OR_RETURN(const Shape shape, ShapeWithEnd(ctx.input(0), alphas.shape()));
    RETURN_IF_ERROR(CheckAlphas<T>(alphas));
    ASSIGN_OR_RETURN(const Philox stream,
                     ctx.num_inputs() == 3 ? SeedInput(ctx.input(1)) : KeyCounterInput(ctx, 1));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    FillGamma<T>(alphas, stream, output, ctx.threads());
    return OkStatus();
  }
};

Status GammaShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape samples, ShapeInput(s, 0));
  ASSIGN_OR_RETURN(PartialShape shape, JoinShapes(samples, s.input(1)));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status StatelessShapeOfInput(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

// Returns the gradient of alpha: dy times the derivatives of the samples with respect to alpha. The
// dimensions of alpha are the last dimensions of the output, so the two broadcast.
std::vector<Gradient> GammaGradient(const GradientScope& g) {
  const DType dtype = g.x(1).dtype();
  // The derivative is computed in float or double.
  const auto wide = [&](Output x) { return dtype == DType::kHalf ? Cast(x, DType::kFloat) : x; };
  const Output slope = Call("RandomGammaGrad", {wide(g.x(1)), wide(g.y())});
  const Output dy = g.dy() * (dtype == DType::kHalf ? Cast(slope, dtype) : slope);
  return {Gradient(), SumToShapeOf(dy, g.x(1))};
}

OP(RandomGamma) {
  return {
      .doc =
          "Draws Gamma-distributed numbers: a tensor of `shape` for each shape parameter in "
          "alpha.",
      .inputs = {{"shape", "S"}, {"alpha", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"S", kIndex}, {"T", {DType::kHalf, DType::kFloat, DType::kDouble}}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = GammaShape,
      .gradient = GammaGradient,
      .examples = {{.inputs = {{{{1}, {4}}}, {{{2}}}}}},
      .stateful = true,
  };
}
KERNEL(RandomGamma, RandomGammaKernel, half, float, double);

// Like GammaGradient, for ops whose last input is alpha.
std::vector<Gradient> StatelessGammaGradient(const GradientScope& g) {
  const int last = g.num_inputs() - 1;
  const DType dtype = g.x(last).dtype();
  const auto wide = [&](Output x) { return dtype == DType::kHalf ? Cast(x, DType::kFloat) : x; };
  const Output slope = Call("RandomGammaGrad", {wide(g.x(last)), wide(g.y())});
  std::vector<Gradient> gradients(last + 1);
  gradients[last] =
      SumToShapeOf(g.dy() * (dtype == DType::kHalf ? Cast(slope, dtype) : slope), g.x(last));
  return gradients;
}

OP(StatelessRandomGammaV2) {
  return {
      .doc =
          "Draws Gamma-distributed numbers, a function of the seed. The last dimensions of `shape` "
          "are those of alpha, the shape parameters.",
      .inputs = {{"shape", "T"}, {"seed", "Tseed"}, {"alpha", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", {DType::kHalf, DType::kFloat, DType::kDouble}},
                {"T", kIndex, DType::kInt32},
                {"Tseed", kIndex, DType::kInt64}},
      .shape = StatelessShapeOfInput,
      .gradient = StatelessGammaGradient,
      // The derivative holds for the distribution and not for single numbers, so central
      // differences cannot check it.
      .examples = {{.inputs = {{{{2}, {4, 2}}}, {{{2}, {1, 2}}}, {{{2}}}},
                    .check_gradient = false}},
  };
}
KERNEL_BY("dtype", StatelessRandomGammaV2, StatelessGammaKernel, half, float, double);

OP(StatelessRandomGammaV3) {
  return {
      .doc =
          "Draws Gamma-distributed numbers, a function of key and counter. The last dimensions of "
          "`shape` are those of alpha, the shape parameters.",
      .inputs = {{"shape", "shape_dtype"},
                 {"key", "uint64"},
                 {"counter", "uint64"},
                 {"alg", "int32"},
                 {"alpha", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", {DType::kHalf, DType::kFloat, DType::kDouble}},
                {"shape_dtype", kIndex, DType::kInt32}},
      .shape = StatelessShapeOfInput,
      .gradient = StatelessGammaGradient,
      .examples = {{.inputs = {{{{2}, {4, 2}}}, {{{1}}}, {{{2}}}, {{.values = {1}}}, {{{2}}}},
                    .check_gradient = false}},
  };
}
KERNEL_BY("dtype", StatelessRandomGammaV3, StatelessGammaKernel, half, float, double);

}  // namespace
}  // namespace penstock
