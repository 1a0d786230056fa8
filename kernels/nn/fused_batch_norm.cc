// SPDX-License-Identifier: Apache-2.0
#include "kernels/nn/fused_batch_norm.h"

#include <algorithm>
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/nn/float_view.h"

namespace penstock {
namespace {

// Computes the mean and the variance of each channel. Each piece of the batch is centred on its own
// mean, so that large means do not cancel the variance; then the pieces are merged (Chan, Golub and
// LeVeque 1979).
struct Moments {
  std::vector<double> mean, variance;

  Moments(const ChannelSplit& v, const float* x, Scheduler& threads)
      : mean(v.channels), variance(v.channels) {
    const int64_t rows = RowsPerPiece<float>(v), pieces = (v.outer + rows - 1) / rows;
    std::vector<float> means(pieces * v.channels), squares(pieces * v.channels);
    ForEachPiece<float>(v, 1, threads, [&](int64_t begin, int64_t end, int64_t piece) {
      float* m = means.data() + piece * v.channels;
      AddRows(v, begin, end, m, [x](int64_t i, int64_t) { return x[i]; });
      const auto n = static_cast<float>((end - begin) * v.inner);
      for (int64_t c = 0; c < v.channels; ++c) m[c] /= n;
      AddRows(v, begin, end, squares.data() + piece * v.channels, [x, m](int64_t i, int64_t c) {
        const float d = x[i] - m[c];
        return d * d;
      });
    });
    double n = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      const auto k = static_cast<double>((std::min(v.outer, (p + 1) * rows) - p * rows) * v.inner);
      for (int64_t c = 0; c < v.channels; ++c) {
        const double delta = means[p * v.channels + c] - mean[c];
        mean[c] += delta * k / (n + k);
        variance[c] += squares[p * v.channels + c] + delta * delta * n * k / (n + k);
      }
      n += k;
    }
    for (double& sum : variance) sum /= n;
  }
};

class FusedBatchNormKernel final : public BatchNormKernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("exponential_avg_factor", &factor_));
    return BatchNormKernel::Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const ChannelSplit v, ImageChannels(x));
    RETURN_IF_ERROR(ExpectChannels("scale", ctx.input(1), v.channels));
    RETURN_IF_ERROR(ExpectChannels("offset", ctx.input(2), v.channels));
    // In training, reads the running statistics only if it averages the new statistics with them.
    const bool running = !training_ || factor_ != 1;
    for (int i : {3, 4}) {
      if (!running && ctx.input(i).num_elements() == 0) continue;
      RETURN_IF_ERROR(ExpectChannels(i == 3 ? "mean" : "variance", ctx.input(i), v.channels));
    }
    Tensor* y;
    Tensor* statistics[4];
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &y));
    for (int i = 0; i < 4; ++i) {
      RETURN_IF_ERROR(ctx.Allocate(i + 1, Shape({v.channels}), &statistics[i]));
    }
    if (ctx.num_outputs() > 5) {  // reserve_space_3 of V3
      Tensor* unused;
      RETURN_IF_ERROR(ctx.Allocate(5, Shape({0}), &unused));
    }
    if (x.num_elements() == 0) {
      for (int i = 0; i < 4; ++i) {
        const float value = i < 2 ? std::numeric_limits<float>::quiet_NaN() : 0;
        std::fill_n(statistics[i]->mutable_data<float>(), v.channels, value);
      }
      return OkStatus();
    }
    const FloatInput<float> in(x);
    SetStatistics(ctx, v, in, statistics);
    Normalize(ctx, v, in, statistics[2]->data<float>(), statistics[3]->data<float>(), y);
    return OkStatus();
  }

  // Sets outputs 1 to 4: batch_mean, batch_variance, and the statistics that normalise x, which the
  // gradient op reads.
  void SetStatistics(KernelContext& ctx, const ChannelSplit& v, const float* x,
                     Tensor** statistics) const {
    const float* running[] = {ctx.input(3).data<float>(), ctx.input(4).data<float>()};
    if (!training_) {
      for (int i = 0; i < 4; ++i) {
        std::copy_n(running[i % 2], v.channels, statistics[i]->mutable_data<float>());
      }
      return;
    }
    const Moments moments(v, x, ctx.threads());
    const auto n = static_cast<double>(v.per_channel());
    const double unbiased = n / std::max(n - 1, 1.0);  // Bessel's correction
    for (int i = 0; i < 2; ++i) {
      float* batch = statistics[i]->mutable_data<float>();
      float* used = statistics[i + 2]->mutable_data<float>();
      const std::vector<double>& values = i == 0 ? moments.mean : moments.variance;
      for (int64_t c = 0; c < v.channels; ++c) {
        used[c] = static_cast<float>(values[c]);
        batch[c] = static_cast<float>(values[c] * (i == 0 ? 1 : unbiased));
        if (factor_ != 1) batch[c] = (1 - factor_) * running[i][c] + factor_ * batch[c];
      }
    }
  }

  void Normalize(KernelContext& ctx, const ChannelSplit& v, const float* x, const float* mean,
                 const float* variance, Tensor* y) const {
    std::vector<float> factors = InverseDeviation(variance, v.channels);
    const float* scale = ctx.input(1).data<float>();
    const float* offset = ctx.input(2).data<float>();
    for (int64_t c = 0; c < v.channels; ++c) factors[c] *= scale[c];
    const float* factor = factors.data();
    FloatOutput<float> out(y);
    MapPerChannel<float>(v, ctx.threads(), out, [=](int64_t i, int64_t c) {
      return (x[i] - mean[c]) * factor[c] + offset[c];
    });
  }

  float factor_ = 1;
};

template <class>
using FusedBatchNormOf = FusedBatchNormKernel;

Status FusedBatchNormShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape image, ImageShape(s, 0));
  ASSIGN_OR_RETURN(const PartialShape channels, ChannelsShape(s, image, 1, 2));
  s.set_output(0, image);
  for (int i = 1; i < 5; ++i) s.set_output(i, channels);
  return OkStatus();  // the meaning of reserve_space_3 depends on the device
}

std::vector<Gradient> FusedBatchNormGradient(const GradientScope& g, const char* op) {
  Attrs attrs;
  for (const char* name : {"epsilon", "data_format", "is_training"}) {
    attrs[name] = g.attrs().at(name);
  }
  std::vector<NodeInput> inputs = {g.dy(), g.x(0), g.x(1), g.y(3), g.y(4)};
  if (g.num_outputs() > 5) inputs.push_back(g.y(5));
  const Outputs d = CallN(op, inputs, attrs);
  return {d[0], d[1], d[2], Gradient(), Gradient()};
}

constexpr char kDoc[] =
    "y = (x - mean) / sqrt(variance + epsilon) * scale + offset for each channel. In "
    "training, mean and variance are those of the batch, and batch_mean and "
    "batch_variance are the running averages, updated by exponential_avg_factor; in "
    "inference, mean and variance are inputs. The first two reserve outputs are "
    "inputs of the gradient op.";

// Returns the definition of a version of the op. `u` is the type of the arguments with one number
// per channel.
OpDef FusedBatchNormDef(const char* u, bool v3, const char* grad_op) {
  OpDef def{
      .doc = kDoc,
      .inputs = {{"x", "T"}, {"scale", u}, {"offset", u}, {"mean", u}, {"variance", u}},
      .outputs = {{"y", "T"},
                  {"batch_mean", u},
                  {"batch_variance", u},
                  {"reserve_space_1", u},
                  {"reserve_space_2", u}},
      .types = {{"T", *u == 'T' ? kBatchNormOldInputTypes : kBatchNormInputTypes}},
      .attrs = BatchNormAttrs(false, v3),
      .shape = FusedBatchNormShape,
      .gradient = [grad_op](const GradientScope& g) { return FusedBatchNormGradient(g, grad_op); },
      .examples = {{.inputs = {{{{2, 2, 2, 3}}}, {{{3}}}, {{{3}}}, {{{0}}}, {{{0}}}}},
                   {.inputs = {{{{2, 3, 2, 2}}}, {{{3}}}, {{{3}}}, {{{3}}}, {{{3}}}},
                    .attrs = {{"data_format", "NCHW"}, {"is_training", false}}}}};
  if (*u != 'T') def.types.push_back({"U", kBatchNormOldInputTypes});
  if (v3) def.outputs.push_back({"reserve_space_3", u});
  return def;
}

}  // namespace

OP(FusedBatchNorm) { return FusedBatchNormDef("T", false, "FusedBatchNormGrad"); }
OP(FusedBatchNormV2) { return FusedBatchNormDef("U", false, "FusedBatchNormGradV2"); }
OP(FusedBatchNormV3) { return FusedBatchNormDef("U", true, "FusedBatchNormGradV3"); }
KERNEL(FusedBatchNorm, FusedBatchNormOf, float);
KERNEL(FusedBatchNormV2, FusedBatchNormOf, half, bfloat16, float);
KERNEL(FusedBatchNormV3, FusedBatchNormOf, half, bfloat16, float);

}  // namespace penstock
