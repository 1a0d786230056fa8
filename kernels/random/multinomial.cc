// SPDX-License-Identifier: Apache-2.0
//
// Multinomial, StatelessMultinomial: classes drawn with probability proportional to exp(logit).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/random/distributions.h"
#include "kernels/random/random_stream.h"
#include "kernels/random/stateless_stream.h"

namespace penstock {
namespace {

// Sets *sums to the running sums of exp(logit - largest logit). Classes whose logit is not finite
// have weight zero.
template <class T>
void Accumulate(absl::Span<const T> logits, std::vector<double>* sums) {
  double largest = std::numeric_limits<double>::lowest();
  for (const T logit : logits) {
    if (std::isfinite(static_cast<double>(logit))) {
      largest = std::max(largest, static_cast<double>(logit));
    }
  }
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto logit = static_cast<double>(logits[i]);
    if (std::isfinite(logit)) total += std::exp(logit - largest);
    (*sums)[i] = total;
  }
}

// If the op has a third input, `seed`, the classes are a function of that seed.
template <class T>
class MultinomialKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    return node.attrs.contains("seed") ? stream_.Init(node) : OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() != 2) {
      return InvalidArgument("logits should be a matrix, got shape ", logits.shape().ToString());
    }
    ASSIGN_OR_RETURN(const int64_t samples, IntScalar(ctx.input(1), "num_samples"));
    if (samples < 0) return InvalidArgument("num_samples should be nonnegative, got ", samples);
    const int64_t classes = logits.dim(1);
    if (classes <= 0) return InvalidArgument("num_classes should be positive, got ", classes);
    if (classes > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("num_classes should be at most 2^31 - 1, got ", classes);
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({logits.dim(0), samples}));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    if (shape.num_elements() == 0) return OkStatus();
    // Each sample uses two numbers. As TensorFlow does, reserves numbers as if each row had a
    // multiple of 4 samples.
    const int64_t reserved = logits.dim(0) * ((samples + 3) / 4 * 4) * 2;
    Philox stream;
    if (ctx.num_inputs() == 3) {
      ASSIGN_OR_RETURN(stream, SeedInput(ctx.input(2)));
    } else {
      stream = stream_.ReserveForOutputs(reserved, *ctx.step().env);
    }
    if (output->dtype() == DType::kInt32) {
      Draw(logits, samples, stream, output->mutable_data<int32_t>(), ctx.threads());
    } else {
      Draw(logits, samples, stream, output->mutable_data<int64_t>(), ctx.threads());
    }
    return OkStatus();
  }

 private:
  template <class Out>
  static void Draw(const Tensor& logits, int64_t samples, const Philox& stream, Out* out,
                   Scheduler& threads) {
    const int64_t classes = logits.dim(1);
    const double cost_ns = 10.0 * classes + 40.0 * samples;
    threads.ParallelFor(logits.dim(0), cost_ns, [&](int64_t begin, int64_t end) {
      std::vector<double> sums(classes);
      for (int64_t row = begin; row < end; ++row) {
        Accumulate<T>({logits.data<T>() + row * classes, static_cast<size_t>(classes)}, &sums);
        PhiloxNumbers numbers(stream, static_cast<uint64_t>(row) * samples * 2);
        for (int64_t i = 0; i < samples; ++i) {
          const uint32_t high = numbers(), low = numbers();
          const double at = UnitDouble(high, low) * sums.back();
          const auto found = std::upper_bound(sums.begin(), sums.end(), at);
          out[row * samples + i] = static_cast<Out>(found - sums.begin());
        }
      }
    });
  }

  RandomStream stream_;
};

Status MultinomialShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape logits, s.WithRank(0, 2));
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  std::vector<int64_t> samples;
  if (!s.ConstantInts(1, &samples)) samples = {PartialShape::kUnknown};
  return SetOutput(s, 0, {logits.dim(0), samples[0]});
}

Status StatelessMultinomialShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape seed, s.WithRank(2, 1));
  if (seed.dim(0) >= 0 && seed.dim(0) != 2) {
    return InvalidArgument("seed must have shape [2], has ", seed.ToString());
  }
  return MultinomialShape(s);
}

OP(Multinomial) {
  return {
      .doc = "Draws num_samples classes per row of logits, with probabilities softmax(logits).",
      .inputs = {{"logits", "T"}, {"num_samples", "int32"}},
      .outputs = {{"output", "output_dtype"}},
      .types = {{"T", kReal}, {"output_dtype", kIndex, DType::kInt64}},
      .attrs = {{"seed", 0}, {"seed2", 0}},
      .shape = MultinomialShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{.values = {4}}}}}},
      .stateful = true,
  };
}
KERNEL(Multinomial, MultinomialKernel, REAL_TYPES);

OP(StatelessMultinomial) {
  return {
      .doc =
          "Draws num_samples classes per row of logits, with probabilities softmax(logits), a "
          "function of the seed.",
      .inputs = {{"logits", "T"}, {"num_samples", "int32"}, {"seed", "Tseed"}},
      .outputs = {{"output", "output_dtype"}},
      .types = {{"T", kReal},
                {"Tseed", kIndex, DType::kInt64},
                {"output_dtype", kIndex, DType::kInt64}},
      .shape = StatelessMultinomialShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{.values = {4}}}, {{{2}, {1, 2}}}}}},
  };
}
KERNEL(StatelessMultinomial, MultinomialKernel, REAL_TYPES);

}  // namespace
}  // namespace penstock
