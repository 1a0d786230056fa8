// SPDX-License-Identifier: Apache-2.0
//
// RandomGamma: gamma-distributed numbers by Marsaglia and Tsang, "A Simple Method for Generating
// Gamma Variables" (2000).
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/random/distributions.h"
#include "kernels/random/generator.h"
#include "kernels/random/shape_input.h"

namespace penstock {
namespace {

double Uniform01(WordStream& words) {
  const uint32_t high = words.Next();
  return UniformDouble(high, words.Next());
}

double NormalFrom(WordStream& words) {
  const double u = Uniform01(words);
  double a, b;
  BoxMuller(u, Uniform01(words), &a, &b);
  return a;
}

// REQUIRES alpha > 0. The method is for alpha >= 1; below, a power of a uniform number corrects.
double Gamma(double alpha, WordStream& words) {
  if (alpha < 1) {
    const double boosted = Gamma(alpha + 1, words);
    return boosted * std::pow(1 - Uniform01(words), 1 / alpha);
  }
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = NormalFrom(words);
    const double cube = 1 + c * x;
    if (cube <= 0) continue;
    const double v = cube * cube * cube;
    const double u = 1 - Uniform01(words);  // in (0, 1]
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

template <class T>
class GammaKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return generator_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape samples, ShapeFromTensor("shape", ctx.input(0)));
    const Tensor& alpha = ctx.input(1);
    Dims dims(samples.dims().begin(), samples.dims().end());
    dims.insert(dims.end(), alpha.shape().dims().begin(), alpha.shape().dims().end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    const T* a = alpha.template data<T>();
    for (int64_t i = 0; i < alpha.num_elements(); ++i) {
      if (!(static_cast<double>(a[i]) > 0) || std::isinf(static_cast<double>(a[i]))) {
        return InvalidArgument("alpha must be positive and finite, has ", static_cast<double>(a[i]),
                               " at ", i);
      }
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    T* y = out->template mutable_data<T>();
    const Philox start = generator_.ReserveForSamples(out->num_elements());
    ctx.threads().ParallelFor(out->num_elements(), 100, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Philox philox = start;
        philox.Skip(static_cast<uint64_t>(i) * (Generator::kWordsPerSample / 4));
        WordStream words(philox);
        y[i] = T(Gamma(static_cast<double>(a[i % alpha.num_elements()]), words));
      }
    });
    return OkStatus();
  }
  Generator generator_;
};

Status GammaShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape sizes, s.WithRank(0, 1));
  std::vector<int64_t> dims;
  PartialShape out;
  if (s.ConstantInts(0, &dims) && s.input(1).known_rank()) {
    dims.insert(dims.end(), s.input(1).dims().begin(), s.input(1).dims().end());
    ASSIGN_OR_RETURN(out, PartialShape::Make(dims));
  }
  s.set_output(0, out);
  return OkStatus();
}

}  // namespace

OP(RandomGamma,
   {
       .doc = "For each `alpha`, a tensor of shape `shape` of gamma-distributed numbers (rate 1).",
       .inputs = {{"shape", "S"}, {"alpha", "T"}},
       .outputs = {{"output", "T"}},
       .types = {{"S", kIndex}, {"T", {DType::kHalf, DType::kFloat, DType::kDouble}}},
       .attrs = {{"seed", 0}, {"seed2", 0}},
       .shape = GammaShape,
       .gradient = NoGradient,
       .examples = {{.inputs = {{{{1}, {4}}}, {{{2}}}}}},
       .stateful = true,
   });
KERNEL(RandomGamma, GammaKernel, half, float, double);

}  // namespace penstock
