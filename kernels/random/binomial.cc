// SPDX-License-Identifier: Apache-2.0
//
// StatelessRandomBinomial, StatefulRandomBinomial: how many of `counts` trials succeed, each with
// probability `probs`.
//
// W. Hoermann: The Generation of Binomial Random Variates. Journal of Statistical Computation and
// Simulation 46 (1993).
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/broadcast_index.h"
#include "kernels/random/generator_state.h"
#include "kernels/random/per_parameter.h"
#include "kernels/random/real_numbers.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// For expectations below this number, FromDistances is cheaper than FromRejection, and needs fewer
// blocks. Each method must use exactly as many blocks of the stream as the same method of
// TensorFlow; otherwise the numbers would differ.
constexpr double kFewSuccesses = 10;
constexpr uint64_t kBlocksForDistances = 42;

// Returns the number of successes: adds the geometric distances between successes until they exceed
// the number of trials.
double FromDistances(double count, double prob, Philox stream) {
  OneByOne<Uniform<double>> uniform;
  double trials = 0, successes = 0;
  while (true) {
    trials += std::ceil(std::log(uniform.Next(stream)) / std::log1p(-prob));
    if (trials > count) return successes;
    ++successes;
  }
}

// Returns log(k!) minus Stirling's approximation of it.
double StirlingError(double k) {
  static constexpr double kErrors[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                       0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                       0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                       0.00833056343336287};
  if (k <= 9) return kErrors[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Returns the number of successes, drawn by transformed rejection; the constants have their names
// in the paper. REQUIRES: prob <= 1/2.
double FromRejection(double count, double prob, Philox stream) {
  OneByOne<Uniform<double>> uniform;
  const double deviation = std::sqrt(count * prob * (1 - prob));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * prob;
  const double c = count * prob + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double r = prob / (1 - prob);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double m = std::floor((count + 1) * prob);
  while (true) {
    const double u = uniform.Next(stream) - 0.5;
    const double v = uniform.Next(stream);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    const double log_v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + StirlingError(m) +
                         StirlingError(count - m) - StirlingError(k) - StirlingError(count - k);
    if (log_v <= bound) return k;
  }
}

double Binomial(double count, double prob, const Philox& stream, int64_t index) {
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1) return count;
  if (std::isnan(prob)) return prob;
  const double rare = prob <= 0.5 ? prob : 1 - prob;
  const double found =
      count * rare >= kFewSuccesses
          ? FromRejection(count, rare, SectionOf(stream, index))
          : FromDistances(count, rare, SectionOf(stream, index, kBlocksForDistances));
  return prob <= 0.5 ? found : count - found;
}

// The inputs counts and probs, checked, and the shapes of both together and of the output.
struct Trials {
  const Tensor &counts, &probs;
  Shape parameters, output;

  // Reads the inputs, of which counts is input `first`, and probs the next one.
  static StatusOr<Trials> From(const KernelContext& ctx, const Tensor& shape, int first) {
    const Tensor &counts = ctx.input(first), &probs = ctx.input(first + 1);
    ASSIGN_OR_RETURN(const PartialShape both, Broadcast(counts.shape(), probs.shape()));
    ASSIGN_OR_RETURN(Shape parameters, Shape::Make(both.dims()));
    ASSIGN_OR_RETURN(Shape output, ShapeWithEnd(shape, parameters));
    RETURN_IF_ERROR(Check(counts, probs, ctx.output_type(0).dtype));
    return Trials{counts, probs, std::move(parameters), std::move(output)};
  }

  static Status Check(const Tensor& counts, const Tensor& probs, DType output) {
    for (int64_t i = 0; i < counts.num_elements(); ++i) {
      if (!std::isfinite(NumberAt(counts, i))) {
        return InvalidArgument("counts must be finite, one is ", NumberAt(counts, i));
      }
    }
    const bool has_nan = output != DType::kInt32 && output != DType::kInt64;
    for (int64_t i = 0; i < probs.num_elements() && !has_nan; ++i) {
      if (std::isnan(NumberAt(probs, i))) {
        return InvalidArgument("probs has NaN, for which there is no ", Name(output));
      }
    }
    return OkStatus();
  }

  void Draw(const Philox& stream, Scheduler& threads, Tensor* to) const {
    const auto at = [&](const Tensor& t, int64_t parameter) {
      return NumberAt(t, BroadcastIndex(parameter, parameters.dims(), t.shape().dims()));
    };
    ForEachNumber(output.num_elements(), parameters.num_elements(), threads,
                  [&](int64_t place, int64_t parameter, int64_t index) {
                    StoreNumber(
                        Binomial(at(counts, parameter), at(probs, parameter), stream, index), to,
                        place);
                  });
  }
};

class StatelessBinomialKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Trials trials, Trials::From(ctx, ctx.input(0), 2));
    ASSIGN_OR_RETURN(const Philox stream, SeedInput(ctx.input(1)));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, trials.output, &output));
    trials.Draw(stream, ctx.threads(), output);
    return OkStatus();
  }
};

class StatefulBinomialKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Trials trials, Trials::From(ctx, ctx.input(2), 3));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, trials.output, &output));
    // TensorFlow skips the generator ahead by this many numbers, whatever the methods use.
    const auto& dims = trials.output.dims();
    uint64_t samples = 1, parameters = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool sample = i + trials.parameters.rank() < dims.size();
      (sample ? samples : parameters) *= static_cast<uint64_t>(dims[i]);
    }
    ASSIGN_OR_RETURN(const GeneratorState before,
                     SkipNumbers(ctx, parameters * 2 * 100 * (samples + 3) / 4));
    trials.Draw(StreamAt(before), ctx.threads(), output);
    return OkStatus();
  }
};

Status BinomialShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  RETURN_IF_ERROR(Broadcast(s.input(2), s.input(3)).status());
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 0));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

OP(StatelessRandomBinomial) {
  return {
      .doc =
          "Draws how many of `counts` trials succeed with probability `probs`, as a function of "
          "the seed. counts and probs broadcast; the last dimensions of `shape` must be the "
          "dimensions of the broadcast tensor.",
      .inputs = {{"shape", "S"}, {"seed", "Tseed"}, {"counts", "T"}, {"probs", "T"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"S", kIndex},
                {"Tseed", kIndex, DType::kInt64},
                {"T", ParameterTypes(), DType::kDouble},
                {"dtype", ParameterTypes(), DType::kInt64}},
      .shape = BinomialShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2}, {4, 2}}},
                               {{{2}, {1, 2}}},
                               {{{2}, {10, 100}}},
                               {{.values = {0.25}}}}}},
  };
}
KERNEL_ANY_TYPE(StatelessRandomBinomial, StatelessBinomialKernel);

OP(StatefulRandomBinomial) {
  return {
      .doc =
          "Draws how many of `counts` trials succeed with probability `probs`, from a generator. "
          "counts and probs broadcast; the last dimensions of `shape` must be the dimensions of "
          "the broadcast tensor.",
      .inputs = {{"resource", "resource"},
                 {"algorithm", "int64"},
                 {"shape", "S"},
                 {"counts", "T"},
                 {"probs", "T"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"S", kIndex},
                {"T", ParameterTypes(), DType::kDouble},
                {"dtype", ParameterTypes(), DType::kInt64}},
      .shape = [](ShapeScope& s) -> Status {
        RETURN_IF_ERROR(Broadcast(s.input(3), s.input(4)).status());
        ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 2));
        s.set_output(0, std::move(shape));
        return OkStatus();
      },
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "works on a generator's state: tests/interop has its program",
  };
}
KERNEL_ANY_TYPE(StatefulRandomBinomial, StatefulBinomialKernel);

}  // namespace
}  // namespace penstock
