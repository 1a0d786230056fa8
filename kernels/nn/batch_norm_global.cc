// SPDX-License-Identifier: Apache-2.0
//
// BatchNormWithGlobalNormalization and its gradient: batch normalisation with given moments, for
// images with the channels last.
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/per_channel.h"

namespace penstock {
namespace {

class GlobalNormKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("variance_epsilon", &epsilon_));
    return node.Attr("scale_after_normalization", &scale_);
  }
  // Returns the channels of t. InvalidArgument unless t has 4 dimensions, and each of the inputs
  // [1, vectors] has one number per channel.
  static StatusOr<ChannelSplit> Check(const KernelContext& ctx, int vectors) {
    const Tensor& t = ctx.input(0);
    if (t.rank() != 4) {
      return InvalidArgument("t must be 4-dimensional, has shape ", t.shape().ToString());
    }
    for (int i = 1; i <= vectors; ++i) {
      if (ctx.input(i).rank() != 1 || ctx.input(i).dim(0) != t.dim(3)) {
        return InvalidArgument("input ", i, " must have shape [", t.dim(3),
                               "], one number per channel of t, has ",
                               ctx.input(i).shape().ToString());
      }
    }
    return SplitAtChannels(t.shape(), "NHWC");
  }
  float epsilon_ = 0;
  bool scale_ = false;
};

// Inputs: t, mean, variance, beta, gamma.
template <class T>
class GlobalNorm final : public GlobalNormKernel {
  using F = FloatOf<T>;
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ChannelSplit v, Check(ctx, 4));
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &y));
    const FloatInput<F> t(ctx.input(0)), m(ctx.input(1)), variance(ctx.input(2)), b(ctx.input(3)),
        gamma(ctx.input(4));
    std::vector<F> factors(v.channels);
    for (int64_t c = 0; c < v.channels; ++c) {
      factors[c] = (scale_ ? gamma[c] : F(1)) / std::sqrt(variance[c] + F(epsilon_));
    }
    const F *x = t, *mean = m, *beta = b, *factor = factors.data();
    FloatOutput<F> out(y);
    MapPerChannel<F>(v, ctx.threads(), out,
                     [=](int64_t i, int64_t c) { return (x[i] - mean[c]) * factor[c] + beta[c]; });
    return OkStatus();
  }
};

// Inputs: t, mean, variance, gamma, backprop. Outputs: the gradients of t, mean, variance, beta,
// gamma.
template <class T>
class GlobalNormGrad final : public GlobalNormKernel {
  using F = FloatOf<T>;
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const ChannelSplit v, Check(ctx, 3));
    const Shape& shape = ctx.input(0).shape();
    if (ctx.input(4).shape() != shape) {
      return InvalidArgument("backprop must have the shape of t, ", shape.ToString(), ", has ",
                             ctx.input(4).shape().ToString());
    }
    Tensor* outputs[5];
    for (int i = 0; i < 5; ++i) {
      RETURN_IF_ERROR(ctx.Allocate(i, i == 0 ? shape : Shape({v.channels}), &outputs[i]));
    }
    const FloatInput<F> t(ctx.input(0)), m(ctx.input(1)), variance(ctx.input(2)),
        gamma(ctx.input(3)), backprop(ctx.input(4));
    const F *x = t, *mean = m, *dy = backprop;
    const std::vector<double> sum =
        SumPerChannel<F>(v, ctx.threads(), [=](int64_t i, int64_t) { return dy[i]; });
    const std::vector<double> product = SumPerChannel<F>(
        v, ctx.threads(), [=](int64_t i, int64_t c) { return dy[i] * (x[i] - mean[c]); });
    FloatOutput<F> dm(outputs[1]), dv(outputs[2]), db(outputs[3]), dg(outputs[4]);
    std::vector<F> factors(v.channels);
    for (int64_t c = 0; c < v.channels; ++c) {
      const double variance_c = double{variance[c]} + epsilon_;
      const double r = 1 / std::sqrt(variance_c), scale = scale_ ? double{gamma[c]} : 1;
      factors[c] = static_cast<F>(r * scale);
      dm[c] = static_cast<F>(-sum[c] * r * scale);
      dv[c] = static_cast<F>(-0.5 * product[c] * scale * r / variance_c);
      db[c] = static_cast<F>(sum[c]);
      dg[c] = static_cast<F>(scale_ ? product[c] * r : 0);
    }
    const F* factor = factors.data();
    FloatOutput<F> dx(outputs[0]);
    MapPerChannel<F>(v, ctx.threads(), dx, [=](int64_t i, int64_t c) { return dy[i] * factor[c]; });
    return OkStatus();
  }
};

Status GlobalNormShape(ShapeScope& s, int vectors) {
  ASSIGN_OR_RETURN(PartialShape t, s.WithRank(0, 4));
  PartialShape channels = PartialShape::UnknownOfRank(1);
  if (!t.known_rank()) t = PartialShape::UnknownOfRank(4);
  channels.set_dim(0, t.dim(3));
  for (int i = 1; i <= vectors; ++i) {
    ASSIGN_OR_RETURN(channels, channels.Merge(s.input(i)));
  }
  t.set_dim(3, channels.dim(0));
  s.set_output(0, t);
  for (int i = 1; i < s.num_outputs(); ++i) s.set_output(i, channels);
  return OkStatus();
}

// Returns gradients made by math ops, because the gradient op itself has no gradient.
std::vector<Gradient> GlobalNormGradient(const GradientScope& g) {
  const Output all_but_channels = g.Const(Tensor::Vector<int32_t>({0, 1, 2}));
  const auto per_channel = [&](Output y) { return Sum(y, all_but_channels); };
  const bool scale = g.attr<bool>("scale_after_normalization");
  const Output variance = g.x(2) + double{g.attr<float>("variance_epsilon")};
  const Output inverse = Rsqrt(variance);
  const Output factor = scale ? g.x(4) * inverse : inverse;
  const Output dt = g.dy() * factor;
  const Output product = per_channel(g.dy() * (g.x(0) - g.x(1)));
  return {dt, -per_channel(dt), product * factor / variance * -0.5, per_channel(g.dy()),
          scale ? product * inverse : ZerosLike(g.x(4))};
}

std::vector<AttrDef> GlobalNormAttrs() {
  return {{"variance_epsilon", Floats{}}, {"scale_after_normalization", Bools{}}};
}
Attrs ExampleAttrs(bool scale) {
  return {{"variance_epsilon", 0.001f}, {"scale_after_normalization", scale}};
}

}  // namespace

OP(BatchNormWithGlobalNormalization) {
  return {
      .doc =
          "Returns (t - m) / sqrt(v + variance_epsilon), times gamma if "
          "scale_after_normalization, plus beta. m, v, beta and gamma have one element per "
          "channel.",
      .inputs = {{"t", "T"}, {"m", "T"}, {"v", "T"}, {"beta", "T"}, {"gamma", "T"}},
      .outputs = {{"result", "T"}},
      .types = {{"T", kFloating}},
      .attrs = GlobalNormAttrs(),
      .shape = [](ShapeScope& s) { return GlobalNormShape(s, 4); },
      .gradient = GlobalNormGradient,
      .examples = {{.inputs = {{{{2, 2, 1, 3}}}, {{{3}}}, {{{3}}}, {{{3}}}, {{{3}}}},
                    .attrs = ExampleAttrs(true)},
                   {.inputs = {{{{2, 2, 1, 3}}}, {{{3}}}, {{{3}}}, {{{3}}}, {{{3}}}},
                    .attrs = ExampleAttrs(false)}},
  };
}
KERNEL(BatchNormWithGlobalNormalization, GlobalNorm, half, bfloat16, float, double);

OP(BatchNormWithGlobalNormalizationGrad) {
  return {
      .doc = "The gradients of BatchNormWithGlobalNormalization for t, m, v, beta and gamma.",
      .inputs = {{"t", "T"}, {"m", "T"}, {"v", "T"}, {"gamma", "T"}, {"backprop", "T"}},
      .outputs = {{"dx", "T"}, {"dm", "T"}, {"dv", "T"}, {"db", "T"}, {"dg", "T"}},
      .types = {{"T", kFloating}},
      .attrs = GlobalNormAttrs(),
      .shape = [](ShapeScope& s) { return GlobalNormShape(s, 3); },
      .examples = {{.inputs = {{{{2, 2, 1, 3}}}, {{{3}}}, {{{3}}}, {{{3}}}, {{{2, 2, 1, 3}}}},
                    .attrs = ExampleAttrs(true)}},
  };
}
KERNEL(BatchNormWithGlobalNormalizationGrad, GlobalNormGrad, half, bfloat16, float, double);

}  // namespace penstock
