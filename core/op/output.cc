// SPDX-License-Identifier: Apache-2.0
#include "core/op/output.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "core/base/check.h"

namespace penstock {
namespace {

// The number of outputs that CallN returns after an error: enough for any op with a fixed number.
constexpr int kOutputsAfterError = 16;

GraphSink& SinkOf(string_view op, const std::vector<NodeInput>& inputs) {
  for (const NodeInput& input : inputs) {
    for (const Output& output : input.outputs) {
      if (output.sink != nullptr) return *output.sink;
    }
  }
  CHECK(false, op, ": no input knows its graph; use CallIn");
  __builtin_unreachable();
}

bool AllValid(const std::vector<NodeInput>& inputs) {
  for (const NodeInput& input : inputs) {
    for (const Output& output : input.outputs) {
      if (!output.valid()) return false;
    }
  }
  return true;
}

// Returns `value` as a scalar of type T if T can hold it.
template <class T>
bool ScalarAs(double value, Tensor* scalar) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    const double end = 2.0 * (Limits::max() / 2 + 1);  // exact, unlike max itself
    if (!(value >= static_cast<double>(Limits::min()) && value < end)) return false;
    if (value != std::trunc(value)) return false;
  }
  *scalar = Tensor::Scalar<T>(static_cast<T>(value));
  return true;
}

bool ScalarOf(DType dtype, double value, Tensor* scalar) {
  switch (dtype) {
#define PENSTOCK_CASE(Enum, T) \
  case DType::Enum:            \
    return ScalarAs<T>(value, scalar);
    PENSTOCK_CASE(kHalf, half)
    PENSTOCK_CASE(kBfloat16, bfloat16)
    PENSTOCK_CASE(kFloat, float)
    PENSTOCK_CASE(kDouble, double)
    PENSTOCK_CASE(kInt8, int8_t)
    PENSTOCK_CASE(kInt16, int16_t)
    PENSTOCK_CASE(kInt32, int32_t)
    PENSTOCK_CASE(kInt64, int64_t)
    PENSTOCK_CASE(kUint8, uint8_t)
    PENSTOCK_CASE(kUint16, uint16_t)
    PENSTOCK_CASE(kUint32, uint32_t)
    PENSTOCK_CASE(kUint64, uint64_t)
#undef PENSTOCK_CASE
    case DType::kComplex64:
      *scalar = Tensor::Scalar<std::complex<float>>(static_cast<float>(value));
      return true;
    case DType::kComplex128:
      *scalar = Tensor::Scalar<std::complex<double>>(value);
      return true;
    default:
      return false;
  }
}

}  // namespace

EdgeType Output::type() const { return valid() ? sink->output_type(node, index) : EdgeType{}; }
PartialShape Output::shape() const {
  return valid() ? sink->output_shape(node, index) : PartialShape();
}
const Tensor* Output::constant() const {
  return valid() ? sink->output_constant(node, index) : nullptr;
}
std::string Output::name() const { return valid() ? sink->output_name(node, index) : ""; }

Output CallIn(GraphSink& sink, string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
              string_view name) {
  if (!AllValid(inputs)) {
    if (sink.status().ok()) sink.Fail(InvalidArgument("an input of a new ", op, " is no output"));
    return {&sink, -1, 0};
  }
  return {&sink, sink.AddNode(op, inputs, std::move(attrs), name), 0};
}

Output Call(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs, string_view name) {
  return CallIn(SinkOf(op, inputs), op, inputs, std::move(attrs), name);
}

Outputs CallN(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs) {
  const Output first = Call(op, inputs, std::move(attrs));
  const int count = first.valid() ? first.sink->num_outputs(first.node) : kOutputsAfterError;
  Outputs outputs;
  for (int i = 0; i < count; ++i) outputs.push_back(first.Sibling(i));
  return outputs;
}

Output Constant(GraphSink& sink, Tensor value) {
  const DType dtype = value.dtype();
  return CallIn(sink, "Const", {}, {{"dtype", dtype}, {"value", std::move(value)}});
}

Output ConstantLike(Output like, double value) {
  CHECK(like.sink != nullptr, "ConstantLike: an output without a graph");
  Tensor scalar;
  if (like.valid() && ScalarOf(like.dtype(), value, &scalar)) {
    return Constant(*like.sink, std::move(scalar));
  }
  if (like.sink->status().ok()) {
    like.sink->Fail(
        InvalidArgument("there is no constant ", value, " of type ", Name(like.dtype())));
  }
  return {like.sink, -1, 0};
}

Output operator+(Output a, Output b) { return Call("AddV2", {a, b}); }
Output operator-(Output a, Output b) { return Call("Sub", {a, b}); }
Output operator*(Output a, Output b) { return Call("Mul", {a, b}); }
Output operator/(Output a, Output b) {
  return Call(IsInteger(a.dtype()) ? "FloorDiv" : "RealDiv", {a, b});
}
Output operator-(Output a) { return Call("Neg", {a}); }
Output operator+(Output a, double b) { return a + ConstantLike(a, b); }
Output operator-(Output a, double b) { return a - ConstantLike(a, b); }
Output operator*(Output a, double b) { return a * ConstantLike(a, b); }
Output operator/(Output a, double b) { return a / ConstantLike(a, b); }
Output operator+(double a, Output b) { return ConstantLike(b, a) + b; }
Output operator-(double a, Output b) { return ConstantLike(b, a) - b; }
Output operator*(double a, Output b) { return ConstantLike(b, a) * b; }
Output operator/(double a, Output b) { return ConstantLike(b, a) / b; }

}  // namespace penstock
