// SPDX-License-Identifier: Apache-2.0
//
// QuantizedRelu and QuantizedRelu6.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

// Clamps to the integer that stands for 0 and, if kSix, the one that stands for 6. The range does
// not change.
template <class Q, bool kSix>
class QuantizedReluKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const QuantizedRange range, RangeInput(ctx, 1, "features"));
    const auto zero = Quantize<Q>(0, range).value;
    const auto top =
        kSix ? Quantize<Q>(6, range).value : static_cast<IntegerOf<Q>>(Levels<Q>::kHighest);
    Tensor* y;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, x.shape(), &y));
    const Q* from = x.data<Q>();
    Q* to = y->mutable_data<Q>();
    ctx.threads().ParallelFor(x.num_elements(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = {std::min(std::max(from[i].value, zero), top)};
    });
    return SetRangeOutputs(ctx, 1, range);
  }
};

Status ReluShape(ShapeScope& s) {
  s.set_output(0, s.input(0));
  for (int i : {1, 2}) s.set_output(i, PartialShape::Scalar());
  return OkStatus();
}

OpDef ReluOp(const char* doc) {
  OpDef op = {
      .doc = doc,
      .inputs = {{"features", "Tinput"}, {"min_features", "float"}, {"max_features", "float"}},
      .outputs = {{"activations", "out_type"},
                  {"min_activations", "float"},
                  {"max_activations", "float"}},
      .types = {{"Tinput", kQuantized}, {"out_type", kQuantized, DType::kQuint8}},
      .shape = ReluShape,
      .gradient = NoGradient,
      .reuses = Reuse::kFirst,
  };
  for (DType type : {DType::kQuint8, DType::kQint32}) {
    op.examples.push_back(
        {.inputs = {{{{2, 3}, {0, 1, 50, 100, 120, 127}}}, {{{}, {-3}}}, {{{}, {9}}}},
         .attrs = {{"Tinput", type}, {"out_type", type}}});
  }
  return op;
}

}  // namespace

OP(QuantizedRelu) {
  return ReluOp("max(features, 0) of quantized integers; the range does not change.");
}
OP(QuantizedRelu6) {
  return ReluOp("min(max(features, 0), 6) of quantized integers; the range does not change.");
}
KERNEL_DEF({.op = "QuantizedRelu",
            .types = {{"Tinput", DType::kQuint8}, {"out_type", DType::kQuint8}},
            .make = Make<QuantizedReluKernel<quint8, false>>});
KERNEL_DEF({.op = "QuantizedRelu",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedReluKernel<qint32, false>>});
KERNEL_DEF({.op = "QuantizedRelu6",
            .types = {{"Tinput", DType::kQuint8}, {"out_type", DType::kQuint8}},
            .make = Make<QuantizedReluKernel<quint8, true>>});
KERNEL_DEF({.op = "QuantizedRelu6",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedReluKernel<qint32, true>>});

}  // namespace penstock
