// SPDX-License-Identifier: Apache-2.0
//
// RandomGamma: gamma-distributed numbers, by the method of G. Marsaglia and W. W. Tsang: A Simple
// Method for Generating Gamma Variables. ACM TOMS 26(3), 2000.
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/distributions.h"
#include "kernels/random/random_stream.h"

namespace penstock {
namespace {

// Returns numbers of a distribution one at a time, taking each group from its end, as TensorFlow
// does.
template <class Distribution>
class OneByOne {
 public:
  double Next(Philox& stream) {
    if (left_ == 0) {
      group_ = distribution_(stream);
      left_ = group_.size();
    }
    return group_[--left_];
  }

 private:
  Distribution distribution_;
  Group<double> group_ = {};
  size_t left_ = 0;
};

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
    // In most cases, the polynomial decides without a logarithm.
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return below_one ? d * v * std::pow(uniform.Next(stream), 1 / alpha) : d * v;
    }
  }
}

template <class T>
class RandomGammaKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape samples, ShapeVector(ctx.input(0), "shape"));
    const Tensor& alphas = ctx.input(1);
    Dims dims(samples.dims().begin(), samples.dims().end());
    dims.insert(dims.end(), alphas.shape().dims().begin(), alphas.shape().dims().end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    for (const T alpha : alphas.flat<T>()) {
      // Also true if alpha is NaN, for which no number would ever be accepted.
      if (!(static_cast<double>(alpha) >= 0)) {
        return InvalidArgument("alpha must be positive, got ", static_cast<double>(alpha));
      }
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    const int64_t per_alpha = samples.num_elements(), num_alphas = alphas.num_elements();
    const Philox start = stream_.ReserveForOutputs(shape.num_elements(), *ctx.step().env);
    T* out = output->mutable_data<T>();
    // The numbers of one alpha are num_alphas apart.
    ctx.threads().ParallelFor(shape.num_elements(), 80, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Philox stream = start;
        stream.Skip(i * RandomStream::kBlocksPerOutput);
        const int64_t alpha = i / per_alpha, sample = i % per_alpha;
        out[sample * num_alphas + alpha] =
            static_cast<T>(Gamma(static_cast<double>(alphas.data<T>()[alpha]), stream));
      }
    });
    return OkStatus();
  }

 private:
  RandomStream stream_;
};

Status GammaShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape samples, ShapeInput(s, 0));
  ASSIGN_OR_RETURN(PartialShape shape, JoinShapes(samples, s.input(1)));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

// The derivatives of the samples by their shape parameters. alpha's dimensions are the last ones of
// the output, so they broadcast.
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

}  // namespace
}  // namespace penstock
