// SPDX-License-Identifier: Apache-2.0
//
// RequantizationRangePerChannel, RequantizePerChannel: convert 32-bit sums, whose channels (the
// last dimension) have a range each, to 8 bits with one range.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

constexpr float kTwoTo31 = 2147483648.0f;

// Returns the largest magnitude of each channel's range, from inputs 1 and 2. InvalidArgument
// unless both are vectors of `channels` finite numbers (or, with `one_for_all`, of one).
StatusOr<std::vector<float>> LargestOfRanges(const KernelContext& ctx, int64_t channels,
                                             bool one_for_all) {
  const Tensor &min = ctx.input(1), &max = ctx.input(2);
  const int64_t n = min.num_elements();
  if (max.num_elements() != n || (n != channels && !(one_for_all && n == 1))) {
    return InvalidArgument("input_min and input_max must have a number for each of the ", channels,
                           " channels, have shapes ", min.shape().ToString(), " and ",
                           max.shape().ToString());
  }
  std::vector<float> largest;
  for (int64_t c = 0; c < n; ++c) {
    const float lower = min.data<float>()[c], upper = max.data<float>()[c];
    if (!std::isfinite(lower) || !std::isfinite(upper)) {
      return InvalidArgument("the range of channel ", c, " must be finite, is [", lower, ", ",
                             upper, "]");
    }
    largest.push_back(std::max(std::abs(lower), std::abs(upper)));
  }
  return largest;
}

class RangePerChannelKernel final : public Kernel {
  Status Init(const KernelInit& node) override {
    return node.Attr("clip_value_max", &clip_value_max_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 4 || input.num_elements() == 0) {
      return InvalidArgument("input must be images [batch, height, width, channels], has shape ",
                             input.shape().ToString());
    }
    const int64_t channels = input.dim(3);
    ASSIGN_OR_RETURN(const std::vector<float> largest, LargestOfRanges(ctx, channels, false));
    std::vector<int64_t> magnitudes(channels);
    bool negative = false;
    const qint32* const x = input.data<qint32>();
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      negative |= x[i].value < 0;
      int64_t& magnitude = magnitudes[i % channels];
      magnitude = std::max(magnitude, std::abs(int64_t{x[i].value}));
    }
    float end = std::numeric_limits<float>::min();
    for (int64_t c = 0; c < channels; ++c) {
      end = std::max(end, largest[c] * static_cast<float>(magnitudes[c]) / kTwoTo31);
    }
    end = std::min(end, clip_value_max_);
    return SetRangeOutputs(ctx, 0, {negative ? -end : 0.0f, end});
  }

  float clip_value_max_ = 0;
};

// Computes y = x * (a factor of the channel), rounded to the nearest integer, halves to even.
template <class Q>
class RequantizePerChannelKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 4 && input.rank() != 5) {
      return InvalidArgument("input must have 4 or 5 dimensions, has shape ",
                             input.shape().ToString());
    }
    const int64_t channels = input.dim(input.rank() - 1);
    ASSIGN_OR_RETURN(std::vector<float> scales, LargestOfRanges(ctx, channels, true));
    ASSIGN_OR_RETURN(const QuantizedRange to, RangeInput(ctx, 3, "the requested output"));
    if (Levels<Q>::kSigned && to.min >= 0) {
      return InvalidArgument("requested_output_min must be negative if out_type is qint8, is ",
                             to.min);
    }
    const float requested = std::max(std::abs(to.min), std::abs(to.max));
    if (requested == 0) return InvalidArgument("the requested output's range must not be [0, 0]");
    scales.resize(channels, scales[0]);
    for (float& scale : scales) {
      scale = static_cast<float>(Levels<Q>::kHighest) * (scale / requested / kTwoTo31);
    }
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const qint32* const x = input.data<qint32>();
    Q* const y = output->mutable_data<Q>();
    ctx.threads().ParallelFor(input.num_elements(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = Saturate<Q>(std::nearbyint(static_cast<float>(x[i].value) * scales[i % channels]));
      }
    });
    return SetRangeOutputs(ctx, 1, to);
  }
};

Status PerChannelShape(ShapeScope& s) {
  s.set_output(0, s.input(0));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

const std::vector<ExampleTensor> kChannelSums = {
    {{1, 1, 3, 2}, {-70000000, -3, 0, 5, 400000000, 90000000}}};
const std::vector<ExampleTensor> kChannelMinima = {{{2}, {-2, -3}}};
const std::vector<ExampleTensor> kChannelMaxima = {{{2}, {1, 5}}};

}  // namespace

OP(RequantizationRangePerChannel) {
  return {
      .doc =
          "Returns the range to request from RequantizePerChannel for sums whose channels have a "
          "range each: the largest magnitude that occurs, at most clip_value_max, with both signs; "
          "or from zero if nothing is negative.",
      .inputs = {{"input", "T"}, {"input_min", "float"}, {"input_max", "float"}},
      .outputs = {{"output_min", "float"}, {"output_max", "float"}},
      .types = {{"T", kQuantized, DType::kQint32}},
      .attrs = {{"clip_value_max", Floats{}}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {kChannelSums, kChannelMinima, kChannelMaxima},
                    .attrs = {{"T", DType::kQint32}, {"clip_value_max", 6.0f}}}},
  };
}
KERNEL_DEF({.op = "RequantizationRangePerChannel",
            .types = {{"T", DType::kQint32}},
            .make = Make<RangePerChannelKernel>});

OP(RequantizePerChannel) {
  OpDef op = {
      .doc =
          "Converts quantized sums, whose channels (the last dimension) have a range each, to "
          "8-bit integers of one range.",
      .inputs = {{"input", "T"},
                 {"input_min", "float"},
                 {"input_max", "float"},
                 {"requested_output_min", "float"},
                 {"requested_output_max", "float"}},
      .outputs = {{"output", "out_type"}, {"output_min", "float"}, {"output_max", "float"}},
      .types = {{"T", kQuantized, DType::kQint32}, {"out_type", kQuantized, DType::kQuint8}},
      .shape = PerChannelShape,
      .gradient = NoGradient,
  };
  for (DType type : {DType::kQuint8, DType::kQint8}) {
    op.examples.push_back(
        {.inputs = {kChannelSums, kChannelMinima, kChannelMaxima, {{{}, {-1}}}, {{{}, {1.5}}}},
         .attrs = {{"T", DType::kQint32}, {"out_type", type}}});
  }
  return op;
}
KERNEL_DEF({.op = "RequantizePerChannel",
            .types = {{"T", DType::kQint32}, {"out_type", DType::kQuint8}},
            .make = Make<RequantizePerChannelKernel<quint8>>});
KERNEL_DEF({.op = "RequantizePerChannel",
            .types = {{"T", DType::kQint32}, {"out_type", DType::kQint8}},
            .make = Make<RequantizePerChannelKernel<qint8>>});

}  // namespace penstock
