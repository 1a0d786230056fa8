// SPDX-License-Identifier: Apache-2.0
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/fused_batch_norm.h"

namespace penstock {
namespace {

// Inputs: y_backprop, x, scale, and the mean and variance used to normalise.
class FusedBatchNormGradKernel final : public BatchNormKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(1);
    ASSIGN_OR_RETURN(const ChannelSplit v, ImageChannels(x));
    if (ctx.input(0).shape() != x.shape()) {
      return InvalidArgument("y_backprop must have the shape of x, ", x.shape().ToString(),
                             ", has ", ctx.input(0).shape().ToString());
    }
    RETURN_IF_ERROR(ExpectChannels("scale", ctx.input(2), v.channels));
    RETURN_IF_ERROR(ExpectChannels("reserve_space_1", ctx.input(3), v.channels));
    RETURN_IF_ERROR(ExpectChannels("reserve_space_2", ctx.input(4), v.channels));
    Tensor *dx, *dscale, *doffset, *unused;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &dx));
    RETURN_IF_ERROR(ctx.Allocate(1, Shape({v.channels}), &dscale));
    RETURN_IF_ERROR(ctx.Allocate(2, Shape({v.channels}), &doffset));
    for (int i : {3, 4}) {
      RETURN_IF_ERROR(ctx.Allocate(i, Shape(), &unused));
      *unused->mutable_data<float>() = 0;
    }
    const FloatInput<float> dy(ctx.input(0)), in(x);
    Differentiate(ctx, v, dy, in, dx, dscale->mutable_data<float>(),
                  doffset->mutable_data<float>());
    return OkStatus();
  }

  void Differentiate(KernelContext& ctx, const ChannelSplit& v, const float* dy, const float* x,
                     Tensor* dx, float* dscale, float* doffset) const {
    const float* scale = ctx.input(2).data<float>();
    const float* mean = ctx.input(3).data<float>();
    const float* variance = ctx.input(4).data<float>();
    const std::vector<float> inverse = InverseDeviation(variance, v.channels);
    const std::vector<double> sum =
        SumPerChannel<float>(v, ctx.threads(), [dy](int64_t i, int64_t) { return dy[i]; });
    const std::vector<double> product = SumPerChannel<float>(
        v, ctx.threads(), [=](int64_t i, int64_t c) { return dy[i] * (x[i] - mean[c]); });
    // dx = factor * (dy - shift - (x - mean) * slope); in inference mean and variance are
    // constants.
    std::vector<float> factors(v.channels), shifts(v.channels), slopes(v.channels);
    const auto n = static_cast<double>(v.per_channel());
    for (int64_t c = 0; c < v.channels; ++c) {
      dscale[c] = static_cast<float>(product[c] * inverse[c]);
      doffset[c] = static_cast<float>(sum[c]);
      factors[c] = scale[c] * inverse[c];
      if (!training_) continue;
      shifts[c] = static_cast<float>(sum[c] / n);
      slopes[c] = static_cast<float>(product[c] / n * inverse[c] * inverse[c]);
    }
    const float *factor = factors.data(), *shift = shifts.data(), *slope = slopes.data();
    FloatOutput<float> out(dx);
    MapPerChannel<float>(v, ctx.threads(), out, [=](int64_t i, int64_t c) {
      return factor[c] * (dy[i] - shift[c] - (x[i] - mean[c]) * slope[c]);
    });
  }
};

template <class>
using FusedBatchNormGradOf = FusedBatchNormGradKernel;

Status FusedBatchNormGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape dy, ImageShape(s, 0));
  ASSIGN_OR_RETURN(const PartialShape image, dy.Merge(s.input(1)));
  ASSIGN_OR_RETURN(const PartialShape channels, ChannelsShape(s, image, 2, 4));
  s.set_output(0, image);
  s.set_output(1, channels);
  s.set_output(2, channels);
  return OkStatus();
}

// The second derivative as a graph, in float. Let x^ = (x - mean) * r, the normalised x. The first
// gradient op computes
//   dx = scale * r * (dy - mean(dy) - x^ * mean(dy * x^)),
//   dscale = sum(dy * x^),  doffset = sum(dy).
// Given the gradients u of dx, a of dscale and b of doffset, this class computes those of dy, x and
// scale.
class SecondDerivative {
 public:
  explicit SecondDerivative(const GradientScope& g)
      : g_(g), rank_(static_cast<int>(g.attr<std::string>("data_format").size())) {
    const int axis = ChannelAxis(g.attr<std::string>("data_format"), rank_);
    std::vector<int32_t> axes, shape(rank_, 1);
    for (int i = 0; i < rank_; ++i) {
      if (i != axis) axes.push_back(i);
    }
    shape[axis] = -1;
    axes_ = g.Const(Tensor::Vector(axes));
    shape_ = g.Const(Tensor::Vector(shape));
  }

  std::vector<Gradient> Result() const {
    const bool training = g_.attr<bool>("is_training");
    const Output dy = Float(g_.x(0)), x = Float(g_.x(1)), scale = PerChannel(g_.x(2));
    const Output r = Rsqrt(PerChannel(g_.x(4)) + double{g_.attr<float>("epsilon")});
    const Output xhat = (x - PerChannel(g_.x(3))) * r;
    const Output u = Float(g_.dy(0)), a = PerChannel(g_.dy(1)), b = PerChannel(g_.dy(2));
    Output to_dy, to_x, to_scale;
    if (training) {
      const Output u_xhat = Average(u * xhat), dy_xhat = Average(dy * xhat);
      to_dy = scale * r * (u - Average(u) - xhat * u_xhat) + a * xhat + b;
      to_scale = Total(u * (dy - Average(dy) - xhat * dy_xhat)) * Squeezed(r);
      // The first part of to_x is the gradient that flows into x^ and from x^, through the mean and
      // deviation of x, into x. The second part is the gradient that flows through the factor r of
      // dx.
      const Output h = a * dy - scale * r * (u * dy_xhat + dy * u_xhat);
      const Output q = Average(u * dy) - Average(u) * Average(dy) - u_xhat * dy_xhat;
      to_x = r * (h - Average(h) - xhat * Average(h * xhat)) - scale * r * r * q * xhat;
    } else {
      to_dy = scale * r * u + a * xhat + b;
      to_scale = Total(u * dy) * Squeezed(r);
      to_x = a * r * dy;
    }
    const DType type = g_.x(0).dtype();
    std::vector<Gradient> result(g_.num_inputs());
    result[0] = CastIfNeeded(to_dy, type);
    result[1] = CastIfNeeded(to_x, type);
    result[2] = to_scale;
    return result;
  }

 private:
  static Output CastIfNeeded(Output x, DType type) { return x.dtype() == type ? x : Cast(x, type); }
  static Output Float(Output x) { return CastIfNeeded(x, DType::kFloat); }
  Output PerChannel(Output x) const { return Reshape(x, shape_); }  // broadcasts against x
  Output Average(Output x) const { return Mean(x, axes_, true); }
  Output Total(Output x) const { return Sum(x, axes_); }
  Output Squeezed(Output x) const { return Reshape(x, g_.Const(Tensor::Vector<int32_t>({-1}))); }

  const GradientScope& g_;
  const int rank_;
  Output axes_, shape_;
};

std::vector<Gradient> FusedBatchNormGradGradient(const GradientScope& g) {
  return SecondDerivative(g).Result();
}

constexpr char kGradDoc[] =
    "The gradients of FusedBatchNorm for x, scale and offset. reserve_space_1 and "
    "reserve_space_2 are the mean and variance that the forward op used.";

OpDef FusedBatchNormGradDef(const char* u, bool v3) {
  OpDef def{
      .doc = kGradDoc,
      .inputs = {{"y_backprop", "T"},
                 {"x", "T"},
                 {"scale", *u == 'T' ? "T" : "float"},
                 {"reserve_space_1", u},
                 {"reserve_space_2", u}},
      .outputs = {{"x_backprop", "T"}, {"scale_backprop", u}, {"offset_backprop", u}},
      .types = {{"T", *u == 'T' ? kBatchNormOldInputTypes : kBatchNormInputTypes}},
      .attrs = BatchNormAttrs(true, v3),
      .shape = FusedBatchNormGradShape,
      .gradient = FusedBatchNormGradGradient,
      .examples = {{.inputs = {{{{2, 2, 2, 3}}}, {{{2, 2, 2, 3}}}, {{{3}}}, {{{3}}}, {{{3}}}}}}};
  if (*u != 'T') def.types.push_back({"U", kBatchNormOldInputTypes});
  if (v3) {
    def.inputs.push_back({"reserve_space_3", u});
    def.examples[0].inputs.push_back({{{0}}});
  }
  def.outputs.push_back({v3 ? "reserve_space_4" : "reserve_space_3", u});
  def.outputs.push_back({v3 ? "reserve_space_5" : "reserve_space_4", u});
  return def;
}

}  // namespace

OP(FusedBatchNormGrad) { return FusedBatchNormGradDef("T", false); }
OP(FusedBatchNormGradV2) { return FusedBatchNormGradDef("U", false); }
OP(FusedBatchNormGradV3) { return FusedBatchNormGradDef("U", true); }
KERNEL(FusedBatchNormGrad, FusedBatchNormGradOf, float);
KERNEL(FusedBatchNormGradV2, FusedBatchNormGradOf, half, bfloat16, float);
KERNEL(FusedBatchNormGradV3, FusedBatchNormGradOf, half, bfloat16, float);

}  // namespace penstock
