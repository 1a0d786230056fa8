// SPDX-License-Identifier: Apache-2.0
//
// Multinomial: class numbers drawn with probabilities softmax(logits), a row of samples for each
// row of logits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/random/distributions.h"
#include "kernels/random/generator.h"

namespace penstock {
namespace {

template <class T>
class MultinomialKernel final : public Kernel {
  Status Init(const KernelInit& node) override { return generator_.Init(node); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() != 2) {
      return InvalidArgument("logits must be a matrix, have shape ", logits.shape().ToString());
    }
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("num_samples must be a scalar, has shape ",
                             ctx.input(1).shape().ToString());
    }
    const int64_t samples = ctx.input(1).template scalar<int32_t>();
    if (samples < 0) return InvalidArgument("num_samples is ", samples, ", must be at least 0");
    const int64_t rows = logits.dim(0), classes = logits.dim(1);
    if (classes == 0 && rows > 0 && samples > 0) {
      return InvalidArgument("num_classes should be positive, got 0");
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(Dims{rows, samples}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const Philox start = generator_.Reserve(static_cast<uint64_t>(shape.num_elements()));
    const T* x = logits.template data<T>();
    ctx.threads().ParallelFor(rows, 20 * (classes + samples), [&](int64_t begin, int64_t end) {
      std::vector<double> cumulated(classes);
      for (int64_t r = begin; r < end; ++r) {
        const double total = Cumulate(x + r * classes, &cumulated);
        Philox philox = start;
        philox.Skip(static_cast<uint64_t>(r * samples));
        for (int64_t s = 0; s < samples; ++s)
          Set(out, r * samples + s, Draw(philox, cumulated, total));
      }
    });
    return OkStatus();
  }

  // Running sums of exp(x - max); classes of logit -infinity or NaN get nothing.
  static double Cumulate(const T* x, std::vector<double>* cumulated) {
    double max = -std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < cumulated->size(); ++c) {
      const double v = static_cast<double>(x[c]);
      if (std::isfinite(v)) max = std::max(max, v);
    }
    double total = 0;
    for (size_t c = 0; c < cumulated->size(); ++c) {
      const double v = static_cast<double>(x[c]);
      if (std::isfinite(v)) total += std::exp(v - max);
      (*cumulated)[c] = total;
    }
    return total;
  }

  static int64_t Draw(Philox& philox, const std::vector<double>& cumulated, double total) {
    const Philox::Words w = philox.Next();
    const double at = UniformDouble(w[0], w[1]) * total;
    const auto it = std::upper_bound(cumulated.begin(), cumulated.end(), at);
    return std::min<int64_t>(it - cumulated.begin(), static_cast<int64_t>(cumulated.size()) - 1);
  }

  static void Set(Tensor* out, int64_t i, int64_t value) {
    if (out->dtype() == DType::kInt64) {
      out->mutable_data<int64_t>()[i] = value;
    } else {
      out->mutable_data<int32_t>()[i] = static_cast<int32_t>(value);
    }
  }

  Generator generator_;
};

Status MultinomialShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape logits, s.WithRank(0, 2));
  std::vector<int64_t> samples;
  PartialShape out = PartialShape::UnknownOfRank(2);
  if (logits.known_rank()) out.set_dim(0, logits.dim(0));
  if (s.ConstantInts(1, &samples) && samples.size() == 1 && samples[0] >= 0) {
    out.set_dim(1, samples[0]);
  }
  s.set_output(0, out);
  return OkStatus();
}

}  // namespace

OP(Multinomial,
   {
       .doc = "Class numbers drawn with probabilities softmax(logits), `num_samples` for each row.",
       .inputs = {{"logits", "T"}, {"num_samples", "int32"}},
       .outputs = {{"output", "output_dtype"}},
       .types = {{"T", kReal}, {"output_dtype", kIndex, DType::kInt64}},
       .attrs = {{"seed", 0}, {"seed2", 0}},
       .shape = MultinomialShape,
       .gradient = NoGradient,
       .examples = {{.inputs = {{{{2, 3}}}, {{{}, {4}}}}}},
       .stateful = true,
   });
KERNEL(Multinomial, MultinomialKernel, float, double, half, bfloat16, int8_t, int16_t, int32_t,
       int64_t, uint8_t, uint16_t, uint32_t, uint64_t);

}  // namespace penstock
