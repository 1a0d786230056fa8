// SPDX-License-Identifier: Apache-2.0
//
// RequantizationRange, Requantize, QuantizeDownAndShrinkRange: convert sums of 32 bits to 8 bits.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// Converts qint32 integers of range `from` to 8-bit integers of range `to`. As in TensorFlow,
// quint8 numbers are computed in fixed point with 16 fractional bits, and qint8 numbers are
// computed in float.
template <class Q>
class Requantizer {
 public:
  Requantizer(QuantizedRange from, QuantizedRange to) : dequantize_(from), quantize_(to) {}
  Q operator()(qint32 q) const { return quantize_(dequantize_(q)); }

 private:
  const MinFirstDequantizer<qint32> dequantize_;
  const MinFirstQuantizer<Q> quantize_;
};

template <>
class Requantizer<quint8> {
 public:
  Requantizer(QuantizedRange from, QuantizedRange to) {
    const float in = from.max - from.min, out = to.max - to.min;
    const float middle = static_cast<float>((from.min + from.max) / 2.0);
    const float per_level = out == 0 ? 0.0f : static_cast<float>(255.0 / out);
    offset_ = ToFixedPoint(middle * per_level * kOne);
    if (out == 0) return;
    scale_ = ToFixedPoint(255.0 * kOne * in / out);
    offset_ -= ToFixedPoint(kOne * (to.min * 255.0) / out);
  }
  quint8 operator()(qint32 q) const {
    // Sums wrap around like TensorFlow's, but without signed overflow.
    const uint64_t product =
        static_cast<uint64_t>(scale_) * static_cast<uint64_t>(int64_t{q.value});
    const int64_t high = static_cast<int64_t>(product) >> 32;
    const int64_t rounded = (high + offset_ + kOne / 2) >> kShift;
    return {static_cast<uint8_t>(std::clamp<int64_t>(rounded, 0, 255))};
  }

 private:
  static constexpr int kShift = 16;
  static constexpr int64_t kOne = int64_t{1} << kShift;
  // Converts to a fixed-point number, limited so that a few of them can be added without overflow.
  static int64_t ToFixedPoint(double x) {
    constexpr double kBound = 1e18;
    if (std::isnan(x)) return 0;
    return static_cast<int64_t>(std::clamp(x, -kBound, kBound));
  }

  int64_t scale_ = 0, offset_ = 0;
};

// Returns the range of the numbers that occur in `input`. If all are above zero, the range begins
// at zero.
QuantizedRange UsedRange(const Tensor& input, QuantizedRange range) {
  const auto integers = input.flat<qint32>();
  const auto [min, max] = std::minmax_element(integers.begin(), integers.end(),
                                              [](qint32 a, qint32 b) { return a.value < b.value; });
  return {std::min(0.0f, Dequantize(*min, range)), Dequantize(*max, range)};
}

Status RequireElements(const Tensor& input) {
  if (input.num_elements() > 0) return OkStatus();
  return InvalidArgument("input must have elements, has shape ", input.shape().ToString());
}

template <class Q>
Status OutputRequantized(KernelContext& ctx, QuantizedRange from, QuantizedRange to) {
  const Tensor& input = ctx.input(0);
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
  const Requantizer<Q> requantize(from, to);
  const qint32* x = input.data<qint32>();
  Q* y = output->mutable_data<Q>();
  ctx.threads().ParallelFor(input.num_elements(), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = requantize(x[i]);
  });
  return SetRangeOutputs(ctx, 1, to);
}

template <class Q>
class RequantizeKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const QuantizedRange from, RangeInput(ctx, 1, "input"));
    ASSIGN_OR_RETURN(const QuantizedRange to, RangeInput(ctx, 3, "the requested output"));
    if (to.min > 0) {
      return InvalidArgument("requested_output_min must be <= 0, is ", to.min);
    }
    return OutputRequantized<Q>(ctx, from, to);
  }
};

class RequantizationRangeKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(RequireElements(ctx.input(0)));
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 1, "input"));
    return SetRangeOutputs(ctx, 0, UsedRange(ctx.input(0), range));
  }
};

class ShrinkRangeKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    RETURN_IF_ERROR(RequireElements(ctx.input(0)));
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 1, "input"));
    return OutputRequantized<quint8>(ctx, range, UsedRange(ctx.input(0), range));
  }
};

Status RequantizeShape(ShapeScope& s) {
  s.set_output(0, s.input(0));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

const std::vector<ExampleTensor> kSums = {{{2, 3}, {-70000, -3, 0, 5, 4000, 90000}}};
const std::vector<ExampleTensor> kMin = {{{}, {-2}}}, kMax = {{{}, {1}}};

}  // namespace

OP(RequantizationRange) {
  return {
      .doc =
          "Returns the part of [input_min, input_max] that the elements of a quantized "
          "tensor use: the range to request from Requantize.",
      .inputs = {{"input", "Tinput"}, {"input_min", "float"}, {"input_max", "float"}},
      .outputs = {{"output_min", "float"}, {"output_max", "float"}},
      .types = {{"Tinput", kQuantized}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {kSums, kMin, kMax}, .attrs = {{"Tinput", DType::kQint32}}}},
  };
}
KERNEL_DEF({.op = "RequantizationRange",
            .types = {{"Tinput", DType::kQint32}},
            .make = Make<RequantizationRangeKernel>});

OP(Requantize) {
  return {
      .doc = "Converts quantized integers to another range and type.",
      .inputs = {{"input", "Tinput"},
                 {"input_min", "float"},
                 {"input_max", "float"},
                 {"requested_output_min", "float"},
                 {"requested_output_max", "float"}},
      .outputs = {{"output", "out_type"}, {"output_min", "float"}, {"output_max", "float"}},
      .types = {{"Tinput", kQuantized}, {"out_type", kQuantized}},
      .shape = RequantizeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {kSums, kMin, kMax, kMin, kMax},
                    .attrs = {{"Tinput", DType::kQint32}, {"out_type", DType::kQuint8}}},
                   {.inputs = {kSums, kMin, kMax, kMin, kMax},
                    .attrs = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint8}}}},
  };
}
KERNEL_DEF({.op = "Requantize",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQuint8}},
            .make = Make<RequantizeKernel<quint8>>});
KERNEL_DEF({.op = "Requantize",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint8}},
            .make = Make<RequantizeKernel<qint8>>});

OP(QuantizeDownAndShrinkRange) {
  return {
      .doc =
          "Computes the range as RequantizationRange does, and converts to it as Requantize "
          "does.",
      .inputs = {{"input", "Tinput"}, {"input_min", "float"}, {"input_max", "float"}},
      .outputs = {{"output", "out_type"}, {"output_min", "float"}, {"output_max", "float"}},
      .types = {{"Tinput", kQuantized}, {"out_type", kQuantized}},
      .shape = RequantizeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {kSums, kMin, kMax},
                    .attrs = {{"Tinput", DType::kQint32}, {"out_type", DType::kQuint8}}}},
  };
}
KERNEL_DEF({.op = "QuantizeDownAndShrinkRange",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQuint8}},
            .make = Make<ShrinkRangeKernel>});

}  // namespace penstock
