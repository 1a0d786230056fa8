// SPDX-License-Identifier: Apache-2.0
//
// QuantizedInstanceNorm: normalises each channel of each image by its own mean and variance.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// The integers of one channel of one image, and how they are normalised. `scale` is the difference
// of the numbers for which two neighbouring integers stand.
struct Channel {
  const quint8* first;
  int64_t height, width, channels;
  float scale, mean = 0, inverse_deviation = 0;

  float Level(int64_t y, int64_t x) const {
    return static_cast<float>(first[(y * width + x) * channels].value);
  }
  float Deviation(int64_t y, int64_t x) const { return scale * (Level(y, x) - mean); }
  float Normed(int64_t y, int64_t x) const { return Deviation(y, x) * inverse_deviation; }

  // Adds up fn(y, x) column by column, as TensorFlow does, because float sums depend on the order.
  template <class Fn>
  float Mean(const Fn& fn) const {
    float sum = 0;
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t y = 0; y < height; ++y) sum += fn(y, x);
    }
    return sum / static_cast<float>(height * width);
  }

  void Measure(float epsilon) {
    mean = Mean([&](int64_t y, int64_t x) { return Level(y, x); });
    const float variance = Mean([&](int64_t y, int64_t x) {
      const float d = Deviation(y, x);
      return d * d;
    });
    inverse_deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(variance + epsilon)));
  }
};

class QuantizedInstanceNormKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("variance_epsilon", &epsilon_));
    RETURN_IF_ERROR(node.Attr("min_separation", &min_separation_));
    RETURN_IF_ERROR(node.Attr("output_range_given", &range_given_));
    RETURN_IF_ERROR(node.Attr("given_y_min", &given_.min));
    RETURN_IF_ERROR(node.Attr("given_y_max", &given_.max));
    if (!range_given_ || given_.min < given_.max) return OkStatus();
    return InvalidArgument("given_y_min must be less than given_y_max: ", given_.min, ", ",
                           given_.max);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4 || x.num_elements() == 0) {
      return InvalidArgument("x must be images [batch, height, width, channels], has shape ",
                             x.shape().ToString());
    }
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 1, "x"));
    if (range.min == range.max) {
      return InvalidArgument("x_min must be less than x_max: ", range.min, ", ", range.max);
    }
    std::vector<Channel> channels = ChannelsOf(x, (range.max - range.min) / 255.0f);
    std::vector<QuantizedRange> used(channels.size());
    const double channel_ns = 3.0 * static_cast<double>(x.dim(1) * x.dim(2));
    const auto for_each = [&](const auto& fn) {
      ctx.threads().ParallelFor(static_cast<int64_t>(channels.size()), channel_ns,
                                [&](int64_t begin, int64_t end) {
                                  for (int64_t c = begin; c < end; ++c) fn(c);
                                });
    };
    for_each([&](int64_t c) {
      channels[c].Measure(epsilon_);
      used[c] = UsedRange(channels[c]);
    });
    const QuantizedRange out = OutputRange(used);
    Tensor* y;
    RETURN_IF_ERROR(ctx.Allocate(0, x.shape(), &y));
    const MinFirstQuantizer<quint8> quantize(out);
    for_each([&](int64_t c) {
      const Channel& channel = channels[c];
      quint8* to = y->mutable_data<quint8>() + (channel.first - x.data<quint8>());
      for (int64_t row = 0; row < channel.height; ++row) {
        for (int64_t col = 0; col < channel.width; ++col, to += channel.channels) {
          *to = quantize(channel.Normed(row, col));
        }
      }
    });
    return SetRangeOutputs(ctx, 1, out);
  }

  static std::vector<Channel> ChannelsOf(const Tensor& x, float scale) {
    std::vector<Channel> channels;
    const int64_t image = x.dim(1) * x.dim(2) * x.dim(3);
    for (int64_t n = 0; n < x.dim(0); ++n) {
      for (int64_t c = 0; c < x.dim(3); ++c) {
        channels.push_back({.first = x.data<quint8>() + n * image + c,
                            .height = x.dim(1),
                            .width = x.dim(2),
                            .channels = x.dim(3),
                            .scale = scale});
      }
    }
    return channels;
  }

  static QuantizedRange UsedRange(const Channel& channel) {
    const float first = channel.Normed(0, 0);
    QuantizedRange used = {first, first};
    for (int64_t y = 0; y < channel.height; ++y) {
      for (int64_t x = 0; x < channel.width; ++x) {
        const float value = channel.Normed(y, x);
        used = {std::min(used.min, value), std::max(used.max, value)};
      }
    }
    return used;
  }

  // Returns the range of the output, which is at least min_separation wide.
  QuantizedRange OutputRange(const std::vector<QuantizedRange>& used) const {
    QuantizedRange out = range_given_ ? given_ : used[0];
    for (const QuantizedRange& each : used) {
      if (range_given_) break;
      out = {std::min(out.min, each.min), std::max(out.max, each.max)};
    }
    if (out.max - out.min < min_separation_) out.max = out.min + min_separation_;
    return out;
  }

  float epsilon_ = 0, min_separation_ = 0;
  bool range_given_ = false;
  QuantizedRange given_;
};

Status InstanceNormShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape x, s.WithRank(0, 4));
  s.set_output(0, std::move(x));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

}  // namespace

OP(QuantizedInstanceNorm) {
  return {
      .doc =
          "Normalises each channel of each quantized image: subtracts its mean and divides by its "
          "standard deviation. The range of the output is [given_y_min, given_y_max] if "
          "output_range_given, else the range of the results; it is at least min_separation wide.",
      .inputs = {{"x", "T"}, {"x_min", "float"}, {"x_max", "float"}},
      .outputs = {{"y", "T"}, {"y_min", "float"}, {"y_max", "float"}},
      .types = {{"T", kQuantized}},
      .attrs = {{"output_range_given", false},
                {"given_y_min", 0.0f},
                {"given_y_max", 0.0f},
                {"variance_epsilon", 1e-5f},
                {"min_separation", 1e-3f}},
      .shape = InstanceNormShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2, 3, 2}}}, {{{}, {-1}}}, {{{}, {2}}}},
                    .attrs = {{"T", DType::kQuint8}}},
                   {.inputs = {{{{2, 2, 3, 2}}}, {{{}, {-1}}}, {{{}, {2}}}},
                    .attrs = {{"T", DType::kQuint8},
                              {"output_range_given", true},
                              {"given_y_min", -3.0f},
                              {"given_y_max", 3.0f}}}},
  };
}
KERNEL_DEF({.op = "QuantizedInstanceNorm",
            .types = {{"T", DType::kQuint8}},
            .make = Make<QuantizedInstanceNormKernel>});

}  // namespace penstock
