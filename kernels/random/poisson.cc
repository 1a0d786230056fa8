// SPDX-License-Identifier: Apache-2.0
//
// RandomPoisson, RandomPoissonV2, StatelessRandomPoisson: Poisson-distributed numbers.
//
// The method for small rates is from D. E. Knuth: The Art of Computer Programming, volume 2, 3.4.1;
// the method for other rates is from W. Hoermann: The Transformed Rejection Method for Generating
// Poisson Random Variables. Insurance: Mathematics and Economics 12 (1993).
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/random/per_parameter.h"
#include "kernels/random/real_numbers.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// Returns the number of events in one unit of time: multiplies uniform numbers until their product
// falls to e^-rate or below.
double SmallPoisson(double rate, double largest, Philox stream) {
  OneByOne<Uniform<double>> uniform;
  const double least = std::exp(-rate);
  double product = 1, count = 0;
  while (true) {
    product *= uniform.Next(stream);
    if (product <= least && count <= largest) return count;
    ++count;
  }
}

// Proposes floor((2a / (1/2 - |u|) + b) u + rate + 0.43), with u uniform in [-1/2, 1/2), whose
// distribution is close to Poisson's. Rejects proposals above `largest`, and others so often that
// the accepted ones have Poisson's distribution. The constants are the paper's.
double LargePoisson(double rate, double largest, Philox stream) {
  OneByOne<Uniform<double>> uniform;
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (true) {
    const double u = uniform.Next(stream) - 0.5;
    const double v = uniform.Next(stream);
    const double from_end = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / from_end + b) * u + rate + 0.43);
    if (k > largest) continue;
    // Accepts every proposal in this rectangle without computing logarithms.
    if (from_end >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (from_end < 0.013 && v > from_end)) continue;
    const double log_v = std::log(v * inverse_alpha / (a / (from_end * from_end) + b));
    if (log_v <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

void FillPoisson(const Tensor& rates, const Philox& stream, Tensor* output, Scheduler& threads) {
  const double largest = LargestOf(output->dtype());
  ForEachNumber(output->num_elements(), rates.num_elements(), threads,
                [&](int64_t place, int64_t parameter, int64_t index) {
                  const double rate = NumberAt(rates, parameter);
                  const Philox section = SectionOf(stream, index);
                  StoreNumber(rate < 10 ? SmallPoisson(rate, largest, section)
                                        : LargePoisson(rate, largest, section),
                              output, place);
                });
}

// Checks the rates. InvalidArgument if drawing for a rate would never end, or its numbers do not
// fit the output.
Status CheckRates(const Tensor& rates, const char* name, DType output) {
  for (int64_t i = 0; i < rates.num_elements(); ++i) {
    const double rate = NumberAt(rates, i);
    if (rate <= LargestOf(output) && std::isfinite(rate)) continue;
    return InvalidArgument(name, " must be finite and at most the largest ", Name(output), ", is ",
                           rate);
  }
  return OkStatus();
}

class RandomPoissonKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return stream_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Shape shape, JoinedShape(ctx.input(0), ctx.input(1)));
    RETURN_IF_ERROR(CheckRates(ctx.input(1), "rate", ctx.output_type(0).dtype));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const Philox stream = stream_.ReserveForOutputs(shape.num_elements(), *ctx.step().env);
    FillPoisson(ctx.input(1), stream, output, ctx.threads());
    return OkStatus();
  }

 private:
  RandomStream stream_;
};

class StatelessPoissonKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& rates = ctx.input(2);
    ASSIGN_OR_RETURN(const Shape shape, ShapeWithEnd(ctx.input(0), rates.shape()));
    ASSIGN_OR_RETURN(const Philox stream, SeedInput(ctx.input(1)));
    RETURN_IF_ERROR(CheckRates(rates, "lam", ctx.output_type(0).dtype));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    FillPoisson(rates, stream, output, ctx.threads());
    return OkStatus();
  }
};

Status PoissonShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape samples, ShapeInput(s, 0));
  ASSIGN_OR_RETURN(PartialShape shape, JoinShapes(samples, s.input(1)));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status StatelessPoissonShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

constexpr char kDoc[] =
    "Draws Poisson-distributed numbers: a tensor of `shape` for each element of rate.";

OP(RandomPoisson) {
  return {
      .doc = kDoc,
      .inputs = {{"shape", "S"}, {"rate", "dtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"S", kIndex}, {"dtype", {DType::kHalf, DType::kFloat, DType::kDouble}}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = PoissonShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{1}, {4}}}, {{{2}, {0.5, 20}}}}}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(RandomPoisson, RandomPoissonKernel);

OP(RandomPoissonV2) {
  return {
      .doc = kDoc,
      .inputs = {{"shape", "S"}, {"rate", "R"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"S", kIndex},
                {"R", ParameterTypes(), DType::kDouble},
                {"dtype", ParameterTypes(), DType::kInt64}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = PoissonShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{1}, {4}}}, {{{2}, {1, 20}}}}}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(RandomPoissonV2, RandomPoissonKernel);

OP(StatelessRandomPoisson) {
  return {
      .doc =
          "Draws Poisson-distributed numbers, a function of the seed. The last dimensions of "
          "`shape` are those of lam, the rates.",
      .inputs = {{"shape", "T"}, {"seed", "Tseed"}, {"lam", "Rtype"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"Rtype", ParameterTypes()},
                {"dtype", ParameterTypes()},
                {"T", kIndex},
                {"Tseed", kIndex, DType::kInt64}},
      .shape = StatelessPoissonShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {4, 2}}}, {{{2}, {1, 2}}}, {{{2}, {1, 20}}}},
                    .attrs = {{"dtype", DType::kInt64}}}},
  };
}
KERNEL_ANY_TYPE(StatelessRandomPoisson, StatelessPoissonKernel);

}  // namespace
}  // namespace penstock
