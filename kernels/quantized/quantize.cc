// SPDX-License-Identifier: Apache-2.0
//
// QuantizeV2 and Dequantize: numbers to quantized integers and back, by one of three rules
// (`mode`), with a range for the whole tensor or for each slice along an axis.
#include <string>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/nn/float_view.h"
#include "kernels/nn/per_channel.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

enum class Mode { kMinCombined, kMinFirst, kScaled };

// The base of both kernels: reads the rule (`mode`), and splits the tensor into slices with their
// own ranges.
class QuantizationKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string mode;
    RETURN_IF_ERROR(node.Attr("mode", &mode));
    mode_ = mode == "MIN_FIRST" ? Mode::kMinFirst
            : mode == "SCALED"  ? Mode::kScaled
                                : Mode::kMinCombined;
    RETURN_IF_ERROR(node.Attr("narrow_range", &narrow_));
    RETURN_IF_ERROR(node.Attr("axis", &axis_));
    if (axis_ < -1) return InvalidArgument("axis must be >= -1, is ", axis_);
    return OkStatus();
  }

 protected:
  // Returns a view of the tensor along its axis; if there is no axis, a single slice.
  // InvalidArgument if the axis is out of range.
  StatusOr<ChannelSplit> Split(const Shape& shape) const {
    if (axis_ == -1) return ChannelSplit{.outer = 1, .channels = 1, .inner = shape.num_elements()};
    if (axis_ < shape.rank()) {
      const int axis = static_cast<int>(axis_);
      if (shape.num_elements() > 0) return SplitAt(shape, axis);
      return ChannelSplit{.outer = 0, .channels = shape.dim(axis), .inner = 0};
    }
    return InvalidArgument("axis ", axis_, " is out of bounds for an input of shape ",
                           shape.ToString());
  }
  // Reads inputs 1 and 2: the range of each slice. InvalidArgument if there is not one for each
  // slice.
  StatusOr<std::vector<QuantizedRange>> Ranges(const KernelContext& ctx, int64_t slices) const {
    std::vector<QuantizedRange> ranges;
    for (int i : {1, 2}) {
      const Tensor& ends = ctx.input(i);
      const bool fits =
          axis_ == -1 ? ends.num_elements() == 1 : ends.rank() == 1 && ends.dim(0) == slices;
      if (!fits) {
        return InvalidArgument(
            i == 1 ? "min_range" : "max_range", " must be ",
            axis_ == -1 ? "a scalar" : StrCat("a vector of ", slices, " numbers"), ", has shape ",
            ends.shape().ToString());
      }
      ranges.resize(slices);
      for (int64_t s = 0; s < slices; ++s) {
        (i == 1 ? ranges[s].min : ranges[s].max) = ends.data<float>()[s];
      }
    }
    for (const QuantizedRange& range : ranges) {
      if (std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max) continue;
      return InvalidArgument(
          "min_range and max_range must be finite with min_range <= max_range, "
          "are ",
          range.min, " and ", range.max);
    }
    return ranges;
  }
  // Calls fn(first element, slice) for each run of `split.inner` elements.
  template <class Fn>
  static void ForEachRun(const ChannelSplit& split, const Fn& fn) {
    for (int64_t r = 0; r < split.outer * split.channels; ++r) {
      fn(r * split.inner, r % split.channels);
    }
  }

  Mode mode_ = Mode::kMinCombined;
  bool narrow_ = false;
  int64_t axis_ = -1;
};

// Converts numbers to Q by the rules MIN_COMBINED and SCALED.
template <class Q>
struct Quantizer {
  using L = Levels<Q>;
  QuantizedRange range;  // the range to which numbers are clamped
  float scale = 1, half = 0;
  bool scaled = false, to_even = false;

  static Quantizer MinCombined(QuantizedRange range) {
    Quantizer q{.range = range};
    q.scale = static_cast<float>((static_cast<double>(L::kHighest) - L::kLowest) /
                                 (range.max - range.min));
    if (L::kSigned) {
      q.half = (static_cast<float>(L::kHighest) - static_cast<float>(L::kLowest) + 1.0f) / 2.0f;
    }
    return q;
  }
  // Uses one scale for both signs, so that zero remains zero. Of the scales that the two ends of
  // the range need, takes the one with the larger steps.
  static Quantizer Scaled(QuantizedRange range, bool narrow, bool to_even) {
    const float lowest = static_cast<float>(L::kLowest + (narrow ? 1 : 0));
    const float highest = static_cast<float>(L::kHighest);
    constexpr float kNone = std::numeric_limits<float>::max();
    const float from_min = lowest * range.min > 0 ? lowest / range.min : kNone;
    const float from_max = highest * range.max > 0 ? highest / range.max : kNone;
    const float scale = std::min(from_min, from_max);
    return {.range = {lowest / scale, highest / scale},
            .scale = scale,
            .scaled = true,
            .to_even = to_even};
  }
  Q operator()(float x) const {
    x = std::max(std::min(x, range.max), range.min);
    if (scaled) {
      x *= scale;
      return Saturate<Q>(to_even ? std::nearbyint(x) : std::round(x));
    }
    x = (x - range.min) * scale;
    return Saturate<Q>(L::kSigned ? std::round(x - half) : x + 0.5f);
  }
};

template <class Q>
class QuantizeKernel final : public QuantizationKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(QuantizationKernel::Init(node));
    std::string round_mode;
    RETURN_IF_ERROR(node.Attr("round_mode", &round_mode));
    to_even_ = round_mode == "HALF_TO_EVEN";
    if (to_even_ && mode_ != Mode::kScaled) {
      return InvalidArgument("round_mode HALF_TO_EVEN needs mode SCALED");
    }
    RETURN_IF_ERROR(node.Attr("ensure_minimum_range", &minimum_));
    if (std::isfinite(minimum_) && minimum_ >= 0) return OkStatus();
    return InvalidArgument("ensure_minimum_range must be >= 0, is ", minimum_);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const ChannelSplit split, Split(input.shape()));
    ASSIGN_OR_RETURN(std::vector<QuantizedRange> ranges, Ranges(ctx, split.channels));
    Tensor *output, *min, *max;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const Shape range_shape = axis_ == -1 ? Shape() : Shape({split.channels});
    RETURN_IF_ERROR(ctx.Allocate(1, range_shape, &min));
    RETURN_IF_ERROR(ctx.Allocate(2, range_shape, &max));
    const float* x = input.data<float>();
    Q* y = output->mutable_data<Q>();
    const auto run = [&](int64_t first, const auto& quantize) {
      ctx.threads().ParallelFor(split.inner, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = first + begin; i < first + end; ++i) y[i] = quantize(x[i]);
      });
    };
    for (QuantizedRange& range : ranges) range = Widened(range);
    ForEachRun(split, [&](int64_t first, int64_t slice) {
      const QuantizedRange range = ranges[slice];
      if (mode_ == Mode::kMinFirst) return run(first, MinFirstQuantizer<Q>(range));
      run(first, mode_ == Mode::kScaled ? Quantizer<Q>::Scaled(range, narrow_, to_even_)
                                        : Quantizer<Q>::MinCombined(range));
    });
    for (int64_t s = 0; s < split.channels; ++s) {
      QuantizedRange range = ranges[s];
      if (mode_ == Mode::kScaled) range = Quantizer<Q>::Scaled(range, narrow_, to_even_).range;
      min->mutable_data<float>()[s] = range.min;
      max->mutable_data<float>()[s] = range.max;
    }
    return OkStatus();
  }

 private:
  // Extends the range so that it contains zero, and so that its width is at least
  // ensure_minimum_range * max(1, the larger magnitude of its ends).
  QuantizedRange Widened(QuantizedRange given) const {
    const float epsilon =
        std::max(1.0f, std::max(std::abs(given.min), std::abs(given.max))) * minimum_;
    QuantizedRange range;
    range.min = std::min(0.0f, given.min);
    range.max = std::max(0.0f, std::max(given.max, range.min + epsilon));
    return range;
  }

  bool to_even_ = false;
  float minimum_ = 0;
};

// Computes x = (q + offset) * scale + shift.
template <class Q>
struct LinearDequantizer {
  using L = Levels<Q>;
  float offset = 0, scale = 1, shift = 0;

  static LinearDequantizer MinCombined(QuantizedRange range) {
    const float levels = static_cast<float>(L::kHighest) - static_cast<float>(L::kLowest);
    return {.offset = L::kSigned ? (levels + 1.0f) / 2.0f : 0.0f,
            .scale = (range.max - range.min) / levels,
            .shift = range.min};
  }
  static LinearDequantizer Scaled(QuantizedRange range, bool narrow) {
    const float from_max = range.max / static_cast<float>(L::kHighest);
    if (!L::kSigned) return {.scale = from_max};
    return {.scale =
                std::max(range.min / static_cast<float>(L::kLowest + (narrow ? 1 : 0)), from_max)};
  }
  float operator()(Q q) const { return (static_cast<float>(q.value) + offset) * scale + shift; }
};

template <class Q>
class DequantizeKernel final : public QuantizationKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(QuantizationKernel::Init(node));
    if (node.output_types[0].dtype == DType::kFloat || mode_ == Mode::kMinCombined) {
      return OkStatus();
    }
    return InvalidArgument("dtype bfloat16 needs mode MIN_COMBINED");
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ASSIGN_OR_RETURN(const ChannelSplit split, Split(input.shape()));
    ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, Ranges(ctx, split.channels));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const Q* x = input.data<Q>();
    FloatOutput<float> y(output);
    const auto run = [&](int64_t first, const auto& dequantize) {
      ctx.threads().ParallelFor(split.inner, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = first + begin; i < first + end; ++i) y[i] = dequantize(x[i]);
      });
    };
    ForEachRun(split, [&](int64_t first, int64_t slice) {
      const QuantizedRange range = ranges[slice];
      if (mode_ == Mode::kMinFirst) return run(first, MinFirstDequantizer<Q>(range));
      run(first, mode_ == Mode::kScaled ? LinearDequantizer<Q>::Scaled(range, narrow_)
                                        : LinearDequantizer<Q>::MinCombined(range));
    });
    return OkStatus();
  }
};

Status QuantizeShape(ShapeScope& s) {
  s.set_output(0, s.input(0));
  PartialShape range = PartialShape::Scalar();
  if (const int64_t axis = s.attr<int64_t>("axis"); axis >= 0) {
    const PartialShape& input = s.input(0);
    range =
        PartialShape({input.known_rank() && axis < input.rank() ? input.dim(static_cast<int>(axis))
                                                                : PartialShape::kUnknown});
  }
  for (int i : {1, 2}) s.set_output(i, range);
  return OkStatus();
}

const AttrDef kModeAttr = {"mode", OneOf{{"MIN_COMBINED", "MIN_FIRST", "SCALED"}}, "MIN_COMBINED"};
const ExampleTensor kSomeNumbers = {{2, 3}, {-1, -0.3, 0, 0.2, 0.6, 2}};
const ExampleTensor kSomeIntegers = {{2, 3}, {0, 1, 5, 17, 100, 127}};
const std::vector<ExampleTensor> kMin = {{{}, {-1}}}, kMax = {{{}, {1.5}}};
const std::vector<ExampleTensor> kSliceMinima = {{{3}, {-1, -2, 0}}},
                                 kSliceMaxima = {{{3}, {1, 2, 3}}};

}  // namespace

OP(QuantizeV2) {
  return {
      .doc =
          "Converts numbers to quantized integers: the smallest integer stands for "
          "output_min and the largest for output_max, the given range widened to contain "
          "zero. The modes MIN_COMBINED and MIN_FIRST differ in the order of rounding; "
          "SCALED maps zero to the integer 0. With an axis, each slice along it has its own "
          "range.",
      .inputs = {{"input", "float"}, {"min_range", "float"}, {"max_range", "float"}},
      .outputs = {{"output", "T"}, {"output_min", "float"}, {"output_max", "float"}},
      .types = {{"T", kQuantized}},
      .attrs = {kModeAttr,
                {"round_mode", OneOf{{"HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"}},
                 "HALF_AWAY_FROM_ZERO"},
                {"narrow_range", false},
                {"axis", -1},
                {"ensure_minimum_range", 0.01f}},
      .shape = QuantizeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{kSomeNumbers}, kMin, kMax}},
                   {.inputs = {{kSomeNumbers}, kMin, kMax}, .attrs = {{"mode", "MIN_FIRST"}}},
                   {.inputs = {{kSomeNumbers}, kSliceMinima, kSliceMaxima},
                    .attrs = {{"mode", "SCALED"}, {"axis", 1}, {"round_mode", "HALF_TO_EVEN"}}}},
  };
}
KERNEL(QuantizeV2, QuantizeKernel, QUANTIZED_TYPES);

OP(Dequantize) {
  return {
      .doc =
          "Converts quantized integers to the numbers that they stand for: the inverse of "
          "QuantizeV2. dtype bfloat16 needs mode MIN_COMBINED.",
      .inputs = {{"input", "T"}, {"min_range", "float"}, {"max_range", "float"}},
      .outputs = {{"output", "dtype"}},
      .types = {{"T", kQuantized}, {"dtype", {DType::kBfloat16, DType::kFloat}, DType::kFloat}},
      .attrs = {kModeAttr, {"narrow_range", false}, {"axis", -1}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{kSomeIntegers}, kMin, kMax}},
                   {.inputs = {{kSomeIntegers}, kMin, kMax},
                    .attrs = {{"mode", "MIN_FIRST"}, {"dtype", DType::kFloat}}},
                   {.inputs = {{kSomeIntegers}, kSliceMinima, kSliceMaxima},
                    .attrs = {{"mode", "SCALED"}, {"axis", 1}, {"dtype", DType::kFloat}}}},
  };
}
KERNEL(Dequantize, DequantizeKernel, QUANTIZED_TYPES);

}  // namespace penstock
