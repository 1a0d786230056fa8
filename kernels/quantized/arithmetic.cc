// SPDX-License-Identifier: Apache-2.0
//
// QuantizedAdd, QuantizedMul and QuantizedBiasAdd: sums and products of quantized integers, in 32
// bits.
#include <algorithm>
#include <array>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/broadcast_index.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// Adds 32-bit integers; the sum wraps around.
int32_t WrappingAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// Returns the range of a sum: symmetric, so that the integer 0 stands for the number 0, with
// `room` times the largest number of the operands.
QuantizedRange SumRange(QuantizedRange a, QuantizedRange b, float room) {
  const float largest = std::max({a.max, -a.min, b.max, -b.min});
  return {-largest * room, largest * room};
}

// Maps quint8 integers of one range to qint32 integers of another one, along a straight line
// through the integers that stand for levels 0 and 1.
class LinearMap {
 public:
  LinearMap(QuantizedRange from, QuantizedRange to)
      : zero_(QuantizeUnclamped<qint32>(Dequantize(quint8{0}, from), to)) {
    const int64_t one = QuantizeUnclamped<qint32>(Dequantize(quint8{1}, from), to);
    step_ = static_cast<int32_t>(static_cast<uint64_t>(one) - static_cast<uint64_t>(zero_));
  }
  int32_t operator()(quint8 q) const {
    return static_cast<int32_t>(std::clamp(zero_ + int64_t{q.value} * step_,
                                           Levels<qint32>::kLowest, Levels<qint32>::kHighest));
  }

 private:
  int64_t zero_ = 0;
  int32_t step_ = 0;
};

// The operands of QuantizedAdd and QuantizedMul, checked.
struct QuantizedOperands {
  QuantizedRange x_range, y_range;
  Shape shape;

  static StatusOr<QuantizedOperands> From(const KernelContext& ctx) {
    QuantizedOperands o;
    ASSIGN_OR_RETURN(o.x_range, RangeInput(ctx, 2, "x"));
    ASSIGN_OR_RETURN(o.y_range, RangeInput(ctx, 4, "y"));
    if (o.x_range.min == o.x_range.max || o.y_range.min == o.y_range.max) {
      return InvalidArgument("max_x must be larger than min_x, and max_y than min_y; the ranges ",
                             "are [", o.x_range.min, ", ", o.x_range.max, "] and [", o.y_range.min,
                             ", ", o.y_range.max, "]");
    }
    ASSIGN_OR_RETURN(const PartialShape both,
                     Broadcast(ctx.input(0).shape(), ctx.input(1).shape()));
    ASSIGN_OR_RETURN(o.shape, Shape::Make(both.dims()));
    return o;
  }
};

// Writes fn(x, y) for each pair of broadcast elements to output 0.
template <class Fn>
Status WritePairs(KernelContext& ctx, const Shape& shape, const Fn& fn) {
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
  const Tensor &x = ctx.input(0), &y = ctx.input(1);
  qint32* const out = output->mutable_data<qint32>();
  const auto at = [&](const Tensor& t, int64_t i) {
    const int64_t own = t.shape() == shape ? i : BroadcastIndex(i, shape.dims(), t.shape().dims());
    return t.data<quint8>()[own];
  };
  ctx.threads().ParallelFor(shape.num_elements(), 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = {fn(at(x, i), at(y, i))};
  });
  return OkStatus();
}

class QuantizedAddKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const QuantizedOperands o, QuantizedOperands::From(ctx));
    const QuantizedRange range = SumRange(o.x_range, o.y_range, 1 << 14);
    const LinearMap x_map(o.x_range, range), y_map(o.y_range, range);
    // TensorFlow converts a single element through its number instead of the straight line.
    const bool one_x = ctx.input(0).num_elements() == 1;
    const bool one_y = !one_x && ctx.input(1).num_elements() == 1;
    const auto exact = [&](quint8 q, QuantizedRange from) {
      return Quantize<qint32>(Dequantize(q, from), range).value;
    };
    RETURN_IF_ERROR(WritePairs(ctx, o.shape, [&](quint8 x, quint8 y) {
      return WrappingAdd(one_x ? exact(x, o.x_range) : x_map(x),
                         one_y ? exact(y, o.y_range) : y_map(y));
    }));
    return SetRangeOutputs(ctx, 1, range);
  }
};

class QuantizedMulKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const QuantizedOperands o, QuantizedOperands::From(ctx));
    // Distances from the integer that stands for zero; their product wraps around.
    const auto x_zero = static_cast<uint32_t>(QuantizeUnclamped<quint8>(0, o.x_range));
    const auto y_zero = static_cast<uint32_t>(QuantizeUnclamped<quint8>(0, o.y_range));
    RETURN_IF_ERROR(WritePairs(ctx, o.shape, [&](quint8 x, quint8 y) {
      return static_cast<int32_t>((x.value - x_zero) * (y.value - y_zero));
    }));
    return SetRangeOutputs(ctx, 1, ProductRange<quint8, quint8>(o.x_range, o.y_range));
  }
};

// Returns, for each integer of an 8-bit type, the integer of range `to` that stands for its number.
// The integers of a signed type follow each other as unsigned ones: 0 to 127, -128 to -1.
template <class Q>
std::array<int32_t, 256> LevelsIn(QuantizedRange from, QuantizedRange to) {
  const MinFirstDequantizer<Q> dequantize(from);
  std::array<int32_t, 256> levels;
  for (int i = 0; i < 256; ++i) {
    levels[i] = Quantize<qint32>(dequantize(Q{static_cast<IntegerOf<Q>>(i)}), to).value;
  }
  return levels;
}

template <class Q>
class QuantizedBiasAddKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &bias = ctx.input(1);
    ASSIGN_OR_RETURN(const QuantizedRange input_range, RangeInput(ctx, 2, "input"));
    ASSIGN_OR_RETURN(const QuantizedRange bias_range, RangeInput(ctx, 4, "bias"));
    if (input.rank() < 2 || bias.rank() != 1 || bias.dim(0) != input.dim(input.rank() - 1)) {
      return InvalidArgument("Must provide as many biases as the last dimension of the input ",
                             "tensor, which must be at least 2D: ", bias.shape().ToString(),
                             " vs. ", input.shape().ToString());
    }
    const QuantizedRange range = SumRange(input_range, bias_range, 1 << 17);
    const auto of_input = LevelsIn<Q>(input_range, range), of_bias = LevelsIn<Q>(bias_range, range);
    // Rounding may make an integer other than 0 stand for zero. It is in both operands.
    const auto zero = static_cast<uint32_t>(Quantize<qint32>(0, range).value);
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
    const int64_t channels = bias.dim(0);
    const Q *const x = input.data<Q>(), *const b = bias.data<Q>();
    qint32* const y = output->mutable_data<qint32>();
    ctx.threads().ParallelFor(input.num_elements(), 5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int32_t term = of_bias[static_cast<uint8_t>(b[i % channels].value)];
        const int32_t sum = WrappingAdd(of_input[static_cast<uint8_t>(x[i].value)], term);
        y[i] = {static_cast<int32_t>(static_cast<uint32_t>(sum) - zero)};
      }
    });
    return SetRangeOutputs(ctx, 1, range);
  }
};

Status ScalarRanges(ShapeScope& s) {
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

Status QuantizedBroadcastShape(ShapeScope& s) {
  RETURN_IF_ERROR(BroadcastShape(s));
  return ScalarRanges(s);
}

Status QuantizedBiasShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape input, s.WithRankAtLeast(0, 2));
  RETURN_IF_ERROR(s.WithRank(1, 1).status());
  s.set_output(0, std::move(input));
  return ScalarRanges(s);
}

const std::vector<ExampleTensor> kLower = {{{}, {-1}}}, kUpper = {{{}, {1.5}}};

OpDef QuantizedBinaryOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"x", "T1"},
                 {"y", "T2"},
                 {"min_x", "float"},
                 {"max_x", "float"},
                 {"min_y", "float"},
                 {"max_y", "float"}},
      .outputs = {{"z", "Toutput"}, {"min_z", "float"}, {"max_z", "float"}},
      .types = {{"T1", kQuantized}, {"T2", kQuantized}, {"Toutput", kQuantized, DType::kQint32}},
      .shape = QuantizedBroadcastShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}, {{{3}}}, kLower, kUpper, kLower, kUpper},
                    .attrs = {{"T1", DType::kQuint8},
                              {"T2", DType::kQuint8},
                              {"Toutput", DType::kQint32}}}},
  };
}

}  // namespace

OP(QuantizedAdd) {
  return QuantizedBinaryOp(
      "Adds quantized integers, with broadcasting, and returns the range that the 32-bit sums "
      "stand for.");
}
OP(QuantizedMul) {
  return QuantizedBinaryOp(
      "Multiplies quantized integers, with broadcasting, and returns the range that the 32-bit "
      "products stand for.");
}
#define PENSTOCK_QUANTIZED_BINARY(Name)                                                        \
  KERNEL_DEF(                                                                                  \
      {.op = #Name,                                                                            \
       .types = {{"T1", DType::kQuint8}, {"T2", DType::kQuint8}, {"Toutput", DType::kQint32}}, \
       .make = Make<Name##Kernel>})
PENSTOCK_QUANTIZED_BINARY(QuantizedAdd);
PENSTOCK_QUANTIZED_BINARY(QuantizedMul);
#undef PENSTOCK_QUANTIZED_BINARY

OP(QuantizedBiasAdd) {
  OpDef op = {
      .doc =
          "Adds a bias to the last dimension of a quantized tensor, and returns the range that the "
          "32-bit sums stand for.",
      .inputs = {{"input", "T1"},
                 {"bias", "T2"},
                 {"min_input", "float"},
                 {"max_input", "float"},
                 {"min_bias", "float"},
                 {"max_bias", "float"}},
      .outputs = {{"output", "out_type"}, {"min_out", "float"}, {"max_out", "float"}},
      .types = {{"T1", kQuantized}, {"T2", kQuantized}, {"out_type", kQuantized}},
      .shape = QuantizedBiasShape,
      .gradient = NoGradient,
  };
  for (DType type : {DType::kQuint8, DType::kQint8}) {
    op.examples.push_back({.inputs = {{{{2, 3}}}, {{{3}}}, kLower, kUpper, kLower, kUpper},
                           .attrs = {{"T1", type}, {"T2", type}, {"out_type", DType::kQint32}}});
  }
  return op;
}
KERNEL_DEF({.op = "QuantizedBiasAdd",
            .types = {{"T1", DType::kQuint8}, {"T2", DType::kQuint8}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedBiasAddKernel<quint8>>});
KERNEL_DEF({.op = "QuantizedBiasAdd",
            .types = {{"T1", DType::kQint8}, {"T2", DType::kQint8}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedBiasAddKernel<qint8>>});

}  // namespace penstock
