// SPDX-License-Identifier: Apache-2.0
#include "core/op/output.h"

#include "core/base/check.h"
#include "core/tensor/numbers.h"
#include "core/tensor/type_lists.h"

namespace penstock {
namespace {

// The number of outputs that CallN returns after an error. No op with a fixed number has more.
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

// Returns true, and sets `*scalar`, if a scalar of type `dtype` can hold `value`.
bool ScalarOf(DType dtype, double value, Tensor* scalar) {
  bool holds = false;
  VisitType<NUMBER_TYPES>(dtype, [&]<class T>() {
    holds = Represents<T>(value);
    if (holds) *scalar = Tensor::Scalar<T>(static_cast<T>(value));
  });
  return holds;
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

Output LocatedOutput::Noted() const {
  if (output_.sink != nullptr) output_.sink->NoteSourceLine(line_);
  return output_;
}

GraphSink& LocatedSink::Noted() const {
  sink->NoteSourceLine(line);
  return *sink;
}

namespace {

string_view Quotient(const Output& a) { return IsInteger(a.dtype()) ? "FloorDiv" : "RealDiv"; }

Output Number(double value, const LocatedOutput& like) { return ConstantLike(like.Noted(), value); }

// Adds the node of a binary operator. `located` is the operand that has the line of the expression;
// `a` or `b` may be a constant that has no line.
Output Binary(string_view op, const LocatedOutput& located, Output a, Output b) {
  located.Noted();
  return Call(op, {a, b});
}

}  // namespace

Output operator+(const LocatedOutput& a, const LocatedOutput& b) {
  return Binary("AddV2", a, a.output(), b.output());
}
Output operator-(const LocatedOutput& a, const LocatedOutput& b) {
  return Binary("Sub", a, a.output(), b.output());
}
Output operator*(const LocatedOutput& a, const LocatedOutput& b) {
  return Binary("Mul", a, a.output(), b.output());
}
Output operator/(const LocatedOutput& a, const LocatedOutput& b) {
  return Binary(Quotient(a.output()), a, a.output(), b.output());
}
Output operator-(const LocatedOutput& a) { return Call("Neg", {a.Noted()}); }
Output operator+(const LocatedOutput& a, double b) {
  return Binary("AddV2", a, a.output(), Number(b, a));
}
Output operator-(const LocatedOutput& a, double b) {
  return Binary("Sub", a, a.output(), Number(b, a));
}
Output operator*(const LocatedOutput& a, double b) {
  return Binary("Mul", a, a.output(), Number(b, a));
}
Output operator/(const LocatedOutput& a, double b) {
  return Binary(Quotient(a.output()), a, a.output(), Number(b, a));
}
Output operator+(double a, const LocatedOutput& b) {
  return Binary("AddV2", b, Number(a, b), b.output());
}
Output operator-(double a, const LocatedOutput& b) {
  return Binary("Sub", b, Number(a, b), b.output());
}
Output operator*(double a, const LocatedOutput& b) {
  return Binary("Mul", b, Number(a, b), b.output());
}
Output operator/(double a, const LocatedOutput& b) {
  return Binary(Quotient(b.output()), b, Number(a, b), b.output());
}

}  // namespace penstock
