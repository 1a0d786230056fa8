// SPDX-License-Identifier: Apache-2.0
//
// QuantizedRelu, QuantizedRelu6 and QuantizedReluX.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/quantized/quantization.h"

namespace penstock {
namespace {

enum class Limit { kNone, kSix, kInput };

// Clamps to the integer that stands for 0 and, unless kLimit is kNone, the one that stands for the
// limit: 6, or input 1. The range does not change.
template <class Q, Limit kLimit>
class QuantizedReluKernel final : public Kernel {
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ASSIGN_OR_RETURN(const QuantizedRange range,
                     RangeInput(ctx, kLimit == Limit::kInput ? 2 : 1, "features"));
    const auto zero = Quantize<Q>(0, range).value;
    auto top = static_cast<IntegerOf<Q>>(Levels<Q>::kHighest);
    if (kLimit == Limit::kSix) top = Quantize<Q>(6, range).value;
    if (kLimit == Limit::kInput) {
      const Tensor& limit = ctx.input(1);
      if (limit.num_elements() != 1) {
        return InvalidArgument("max_value must be a scalar, has shape ", limit.shape().ToString());
      }
      if (!(limit.scalar<float>() >= 0)) {
        return InvalidArgument("max_value must be >= 0, is ", limit.scalar<float>());
      }
      top = Quantize<Q>(limit.scalar<float>(), range).value;
    }
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
OP(QuantizedReluX) {
  OpDef op = ReluOp(
      "min(max(features, 0), max_value) of quantized integers; the range does not change. "
      "max_value must be >= 0.");
  op.inputs.insert(op.inputs.begin() + 1, ArgDef{"max_value", "float"});
  for (Example& example : op.examples) {
    const std::vector<ExampleTensor> limit = {{.shape = {}, .values = {2}}};
    example.inputs.insert(example.inputs.begin() + 1, limit);
  }
  return op;
}
KERNEL_DEF({.op = "QuantizedRelu",
            .types = {{"Tinput", DType::kQuint8}, {"out_type", DType::kQuint8}},
            .make = Make<QuantizedReluKernel<quint8, Limit::kNone>>});
KERNEL_DEF({.op = "QuantizedRelu",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedReluKernel<qint32, Limit::kNone>>});
KERNEL_DEF({.op = "QuantizedRelu6",
            .types = {{"Tinput", DType::kQuint8}, {"out_type", DType::kQuint8}},
            .make = Make<QuantizedReluKernel<quint8, Limit::kSix>>});
KERNEL_DEF({.op = "QuantizedRelu6",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedReluKernel<qint32, Limit::kSix>>});
KERNEL_DEF({.op = "QuantizedReluX",
            .types = {{"Tinput", DType::kQuint8}, {"out_type", DType::kQuint8}},
            .make = Make<QuantizedReluKernel<quint8, Limit::kInput>>});
KERNEL_DEF({.op = "QuantizedReluX",
            .types = {{"Tinput", DType::kQint32}, {"out_type", DType::kQint32}},
            .make = Make<QuantizedReluKernel<qint32, Limit::kInput>>});

}  // namespace penstock
