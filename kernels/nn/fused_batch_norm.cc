// SPDX-License-Identifier: Apache-2.0
//
// FusedBatchNorm and its gradient, in three versions that differ in what types and formats they
// admit (and in one more reserve output, which is only of use to GPUs).
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/per_channel.h"

namespace penstock {
namespace {

class BatchNormKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("epsilon", &epsilon_));
    RETURN_IF_ERROR(node.Attr("data_format", &format_));
    return node.Attr("is_training", &training_);
  }

  StatusOr<Channels> ImageChannels(const Tensor& x) const {
    const int rank = static_cast<int>(format_.size());
    // The two-dimensional formats also serve volumes whose depth was folded into their height.
    if (x.rank() != rank) {
      return InvalidArgument("x must have ", rank, " dimensions (", format_, "), has shape ",
                             x.shape().ToString());
    }
    return SplitAtChannels(x.shape(), format_);
  }

  static Status ExpectChannels(const char* what, const Tensor& t, int64_t channels) {
    if (t.rank() == 1 && t.dim(0) == channels) return OkStatus();
    return InvalidArgument(what, " must have shape [", channels, "], one number per channel, has ",
                           t.shape().ToString());
  }

  // 1 / sqrt(variance + epsilon)
  std::vector<float> InverseDeviation(const float* variance, int64_t n) const {
    std::vector<float> result(n);
    for (int64_t c = 0; c < n; ++c) result[c] = 1 / std::sqrt(variance[c] + epsilon_);
    return result;
  }

  float epsilon_ = 0;
  std::string format_;
  bool training_ = true;
};

// Mean and variance of each channel. Pieces of the batch are centred on their own means, which
// keeps large means from cancelling the variance, and merged (Chan, Golub and LeVeque 1979).
struct Moments {
  std::vector<double> mean, variance;

  Moments(const Channels& v, const float* x, ThreadPool& threads)
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
    ASSIGN_OR_RETURN(const Channels v, ImageChannels(x));
    RETURN_IF_ERROR(ExpectChannels("scale", ctx.input(1), v.channels));
    RETURN_IF_ERROR(ExpectChannels("offset", ctx.input(2), v.channels));
    // In training the running statistics are of use only where they are carried on.
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
    if (ctx.num_outputs() > 5) {  // V3
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

  // batch_mean, batch_variance, and those that normalise and that the gradient asks for.
  void SetStatistics(KernelContext& ctx, const Channels& v, const float* x,
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
    const double unbiased = n / std::max(n - 1, 1.0);  // Bessel
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

  void Normalize(KernelContext& ctx, const Channels& v, const float* x, const float* mean,
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

// Inputs: y_backprop, x, scale, and the mean and variance that normalised.
class FusedBatchNormGradKernel final : public BatchNormKernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(1);
    ASSIGN_OR_RETURN(const Channels v, ImageChannels(x));
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

  void Differentiate(KernelContext& ctx, const Channels& v, const float* dy, const float* x,
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
using FusedBatchNormOf = FusedBatchNormKernel;
template <class>
using FusedBatchNormGradOf = FusedBatchNormGradKernel;

StatusOr<PartialShape> ImageShape(ShapeScope& s, int input) {
  return s.WithRank(input, static_cast<int>(s.attr<std::string>("data_format").size()));
}

// [channels], as far as `image` and the vectors from input `first` to `last` say.
StatusOr<PartialShape> ChannelsShape(ShapeScope& s, const PartialShape& image, int first,
                                     int last) {
  PartialShape channels = PartialShape::UnknownOfRank(1);
  if (image.known_rank()) {
    channels.set_dim(0, image.dim(ChannelAxis(s.attr<std::string>("data_format"), image.rank())));
  }
  for (int i = first; i <= last; ++i) {
    ASSIGN_OR_RETURN(channels, channels.Merge(s.input(i)));
  }
  return channels;
}

Status FusedBatchNormShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape image, ImageShape(s, 0));
  ASSIGN_OR_RETURN(const PartialShape channels, ChannelsShape(s, image, 1, 2));
  s.set_output(0, image);
  for (int i = 1; i < 5; ++i) s.set_output(i, channels);
  return OkStatus();  // what reserve_space_3 is depends on the device
}

Status FusedBatchNormGradShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape dy, ImageShape(s, 0));
  ASSIGN_OR_RETURN(const PartialShape image, dy.Merge(s.input(1)));
  ASSIGN_OR_RETURN(const PartialShape channels, ChannelsShape(s, image, 2, 4));
  s.set_output(0, image);
  s.set_output(1, channels);
  s.set_output(2, channels);
  return OkStatus();
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

// The second derivative as graph maths, in float. With x^ = (x - mean) * r normalised, it follows
//   dx = scale * r * (dy - mean(dy) - x^ * mean(dy * x^)),  dscale = sum(dy * x^),  doffset =
//   sum(dy)
// back to dy, x and scale, given the gradients u of dx, a of dscale and b of doffset.
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
      // What flows into x^, and from there, past its own mean and deviation, into x; and what flows
      // through the factor r of dx.
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
    result[0] = Typed(to_dy, type);
    result[1] = Typed(to_x, type);
    result[2] = to_scale;
    return result;
  }

 private:
  static Output Typed(Output x, DType type) { return x.dtype() == type ? x : Cast(x, type); }
  static Output Float(Output x) { return Typed(x, DType::kFloat); }
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

constexpr char kDoc[] =
    "y = (x - mean) / sqrt(variance + epsilon) * scale + offset for each channel. In training mean "
    "and variance are the batch's, and batch_mean and batch_variance carry the running ones on by "
    "exponential_avg_factor; in inference they are given. The first two reserve outputs are what "
    "the gradient asks for.";
constexpr char kGradDoc[] =
    "The gradients of FusedBatchNorm for x, scale and offset. reserve_space_1 and _2 are the mean "
    "and variance that normalised.";
const DTypes kOneType = {DType::kFloat};
const DTypes kImageTypes = {DType::kHalf, DType::kBfloat16, DType::kFloat};

std::vector<AttrDef> BatchNormAttrs(bool grad, bool volumes) {
  OneOf formats{{"NHWC", "NCHW"}};
  if (volumes) formats.allowed = {"NHWC", "NCHW", "NDHWC", "NCDHW"};
  std::vector<AttrDef> attrs = {
      {"epsilon", 0.0001f}, {"data_format", formats, "NHWC"}, {"is_training", true}};
  if (!grad) attrs.push_back({"exponential_avg_factor", 1.0f});
  return attrs;
}

// `u` is the type of what there is one of per channel.
OpDef FusedBatchNormDef(const char* u, bool v3, const char* grad_op) {
  OpDef def{
      .doc = kDoc,
      .inputs = {{"x", "T"}, {"scale", u}, {"offset", u}, {"mean", u}, {"variance", u}},
      .outputs = {{"y", "T"},
                  {"batch_mean", u},
                  {"batch_variance", u},
                  {"reserve_space_1", u},
                  {"reserve_space_2", u}},
      .types = {{"T", *u == 'T' ? kOneType : kImageTypes}},
      .attrs = BatchNormAttrs(false, v3),
      .shape = FusedBatchNormShape,
      .gradient = [grad_op](const GradientScope& g) { return FusedBatchNormGradient(g, grad_op); },
      .examples = {{.inputs = {{{{2, 2, 2, 3}}}, {{{3}}}, {{{3}}}, {{{0}}}, {{{0}}}}},
                   {.inputs = {{{{2, 3, 2, 2}}}, {{{3}}}, {{{3}}}, {{{3}}}, {{{3}}}},
                    .attrs = {{"data_format", "NCHW"}, {"is_training", false}}}}};
  if (*u != 'T') def.types.push_back({"U", kOneType});
  if (v3) def.outputs.push_back({"reserve_space_3", u});
  return def;
}

OpDef FusedBatchNormGradDef(const char* u, bool v3) {
  OpDef def{
      .doc = kGradDoc,
      .inputs = {{"y_backprop", "T"},
                 {"x", "T"},
                 {"scale", *u == 'T' ? "T" : "float"},
                 {"reserve_space_1", u},
                 {"reserve_space_2", u}},
      .outputs = {{"x_backprop", "T"}, {"scale_backprop", u}, {"offset_backprop", u}},
      .types = {{"T", *u == 'T' ? kOneType : kImageTypes}},
      .attrs = BatchNormAttrs(true, v3),
      .shape = FusedBatchNormGradShape,
      .gradient = FusedBatchNormGradGradient,
      .examples = {{.inputs = {{{{2, 2, 2, 3}}}, {{{2, 2, 2, 3}}}, {{{3}}}, {{{3}}}, {{{3}}}}}}};
  if (*u != 'T') def.types.push_back({"U", kOneType});
  if (v3) {
    def.inputs.push_back({"reserve_space_3", u});
    def.examples[0].inputs.push_back({{{0}}});
  }
  def.outputs.push_back({v3 ? "reserve_space_4" : "reserve_space_3", u});
  def.outputs.push_back({v3 ? "reserve_space_5" : "reserve_space_4", u});
  return def;
}

}  // namespace

OP(FusedBatchNorm, (FusedBatchNormDef("T", false, "FusedBatchNormGrad")));
OP(FusedBatchNormV2, (FusedBatchNormDef("U", false, "FusedBatchNormGradV2")));
OP(FusedBatchNormV3, (FusedBatchNormDef("U", true, "FusedBatchNormGradV3")));
OP(FusedBatchNormGrad, (FusedBatchNormGradDef("T", false)));
OP(FusedBatchNormGradV2, (FusedBatchNormGradDef("U", false)));
OP(FusedBatchNormGradV3, (FusedBatchNormGradDef("U", true)));
KERNEL(FusedBatchNorm, FusedBatchNormOf, float);
KERNEL(FusedBatchNormV2, FusedBatchNormOf, half, bfloat16, float);
KERNEL(FusedBatchNormV3, FusedBatchNormOf, half, bfloat16, float);
KERNEL(FusedBatchNormGrad, FusedBatchNormGradOf, float);
KERNEL(FusedBatchNormGradV2, FusedBatchNormGradOf, half, bfloat16, float);
KERNEL(FusedBatchNormGradV3, FusedBatchNormGradOf, half, bfloat16, float);

}  // namespace penstock
