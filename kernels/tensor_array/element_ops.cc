// SPDX-License-Identifier: Apache-2.0
//
// The ops that move tensors into and out of tensor arrays. Flows are float values whose edges order
// the ops; gradients follow the flows backwards.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/tensor_array/element_kernels.h"

namespace penstock {
namespace {

bool IsGradientScope(string_view part) {
  if (part == "gradients") return true;
  int number;
  return absl::StartsWith(part, "gradients_") &&
         absl::SimpleAtoi(part.substr(sizeof("gradients_") - 1), &number);
}

// Returns the gradient name scope that contains `name`, or "" if none does.
std::string GradientScopeOf(const std::string& name) {
  size_t end = 0;
  for (const string_view part : absl::StrSplit(name, '/')) {
    end += part.size();
    if (IsGradientScope(part)) return name.substr(0, end);
    ++end;
  }
  return "";
}

// Returns a name that is the same for all gradients that one AddGradients call adds, and that
// differs between calls: the gradient name scope of `dy`. Fails the sink if `dy` is in no such
// scope.
std::string SourceOf(const GradientScope& g, Output dy) {
  std::string source = GradientScopeOf(dy.name());
  if (source.empty()) source = GradientScopeOf(Identity(dy).name());  // dy is the caller's own node
  if (source.empty() && g.sink().status().ok()) {
    g.sink().Fail(InvalidArgument("the gradient '", dy.name(), "' of tensor array op '",
                                  g.node_name(), "' is in no scope called gradients"));
  }
  return source;
}

// Adds nodes of the TensorArray ops of the same generation (reference, V2 or V3) as the
// differentiated op.
class Family {
 public:
  Family(const GradientScope& g, OpGeneration generation)
      : g_(g),
        suffix_(generation == OpGeneration::kReference ? ""
                : generation == OpGeneration::kStrings ? "V2"
                                                       : "V3") {}

  // Returns the array of gradients. It is created after the op that outputs `flow`.
  Output GradientArray(Output flow, Output dy) const {
    return CallN(Op("Grad"), {g_.x(0), flow}, {{"source", SourceOf(g_, dy)}})[0];
  }
  std::string Op(const char* op) const { return StrCat("TensorArray", op, suffix_); }

 private:
  const GradientScope& g_;
  const std::string suffix_;
};

Attrs DTypeAttr(Output like) { return {{"dtype", like.dtype()}}; }

// Returns the known shape of an element: that of `value` without its first dimension.
PartialShape ElementShape(Output value) {
  const PartialShape shape = value.shape();
  return shape.known_rank() && shape.rank() > 0 ? SubShape(shape, 1, shape.rank()) : PartialShape();
}

// Returns the gradients of a write's value and flow. The gradient of the value is read from the
// array of gradients, after the gradients of all reads have been written to it: dy is the flow of
// those writes.
std::vector<Gradient> WriteGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output array = ops.GradientArray(g.dy(), g.dy());
  return {{}, {}, Call(ops.Op("Read"), {array, g.x(1), g.dy()}, DTypeAttr(g.x(2))), g.dy()};
}

// Returns the gradient for the flow input of a read: the flow of a write of dy to the array of
// gradients. That array must be made after the last forward write, so it depends on the flow that
// is input 2 of the read.
std::vector<Gradient> ReadGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output dy = g.dy();
  const Output array = ops.GradientArray(g.x(2), dy);
  return {{}, {}, Call(ops.Op("Write"), {array, g.x(1), dy, g.x(2)})};
}

std::vector<Gradient> GatherGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output dy = g.dy();
  const Output array = ops.GradientArray(g.x(2), dy);
  return {{}, {}, Call(ops.Op("Scatter"), {array, g.x(1), dy, g.x(2)})};
}

std::vector<Gradient> ScatterGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output array = ops.GradientArray(g.dy(), g.dy());
  Attrs attrs = DTypeAttr(g.x(2));
  attrs["element_shape"] = ElementShape(g.x(2));
  return {{}, {}, Call(ops.Op("Gather"), {array, g.x(1), g.dy()}, std::move(attrs)), g.dy()};
}

std::vector<Gradient> PackGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output dy = g.dy();
  const Output array = ops.GradientArray(g.x(1), dy);
  return {{}, Call(ops.Op("Unpack"), {array, dy, g.x(1)})};
}

std::vector<Gradient> UnpackGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output array = ops.GradientArray(g.dy(), g.dy());
  Attrs attrs = DTypeAttr(g.x(1));
  attrs["element_shape"] = ElementShape(g.x(1));
  return {{}, Call(ops.Op("Pack"), {array, g.dy()}, std::move(attrs)), g.dy()};
}

std::vector<Gradient> ConcatGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output dy = g.dy();
  const Output array = ops.GradientArray(g.x(1), dy);
  return {{}, Call(ops.Op("Split"), {array, dy, g.y(1), g.x(1)})};
}

std::vector<Gradient> SplitGradient(const GradientScope& g, OpGeneration generation) {
  const Family ops(g, generation);
  const Output array = ops.GradientArray(g.dy(), g.dy());
  Attrs attrs = DTypeAttr(g.x(1));
  attrs["element_shape_except0"] = ElementShape(g.x(1));
  return {{}, CallN(ops.Op("Concat"), {array, g.dy()}, std::move(attrs))[0], {}, g.dy()};
}

PartialShape ElementOf(const ShapeScope& s) {
  return s.element(0) != nullptr ? s.element(0)->shape : PartialShape();
}

// Sets output 0 to `first` stacked elements. The shape of an element is merged from the attribute
// `attr` and the known shape `element`.
Status SetStacked(ShapeScope& s, const char* attr, const PartialShape& element, int64_t first) {
  ASSIGN_OR_RETURN(const PartialShape each, s.attr<PartialShape>(attr).Merge(element));
  ASSIGN_OR_RETURN(PartialShape shape, JoinShapes(PartialShape({first}), each));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status WriteShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  RETURN_IF_ERROR(s.WithRank(3, 0).status());
  RETURN_IF_ERROR(ElementOf(s).Merge(s.input(2)).status());
  return ScalarShape(s);
}

Status ReadShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  RETURN_IF_ERROR(s.WithRank(2, 0).status());
  s.set_output(0, ElementOf(s));
  return OkStatus();
}

Status GatherShape(ShapeScope& s) {
  int64_t count = PartialShape::kUnknown;
  if (s.num_inputs() == 3) {
    ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(1, 1));
    count = indices.dim(0);
  }
  return SetStacked(s, "element_shape", ElementOf(s), count);
}

Status ScatterShape(ShapeScope& s) {
  const int value_input = s.num_inputs() - 2;
  ASSIGN_OR_RETURN(const PartialShape value, s.WithRankAtLeast(value_input, 1));
  if (value_input == 2) {
    ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(1, 1));
    if (value.known_rank()) {
      RETURN_IF_ERROR(indices.Merge(PartialShape({value.dim(0)})).status());
    }
  }
  if (value.known_rank()) {
    RETURN_IF_ERROR(ElementOf(s).Merge(SubShape(value, 1, value.rank())).status());
  }
  return ScalarShape(s);
}

Status ConcatShape(ShapeScope& s) {
  s.set_output(1, PartialShape::UnknownOfRank(1));
  const PartialShape each = ElementOf(s);
  const bool known = each.known_rank() && each.rank() > 0;
  return SetStacked(s, "element_shape_except0",
                    known ? SubShape(each, 1, each.rank()) : PartialShape(),
                    PartialShape::kUnknown);
}

Status SplitShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRankAtLeast(1, 1).status());
  RETURN_IF_ERROR(s.WithRank(2, 1).status());
  return ScalarShape(s);
}

using FamilyGradient = std::vector<Gradient> (*)(const GradientScope&, OpGeneration);

// Defines an op of one generation: its handle, then `inputs`, then the flow.
OpDef ElementOp(OpGeneration generation, std::string doc, std::vector<ArgDef> inputs,
                std::vector<ArgDef> outputs, ShapeFn shape, FamilyGradient gradient) {
  OpDef op = {.doc = std::move(doc),
              .inputs = {HandleArg(generation)},
              .outputs = std::move(outputs),
              .shape = std::move(shape),
              .gradient = [=](const GradientScope& g) { return gradient(g, generation); },
              .stateful = true};
  for (ArgDef& input : inputs) op.inputs.push_back(std::move(input));
  op.inputs.push_back({"flow_in", "float"});
  op.types = {{op.outputs[0].name == "value" ? "dtype" : "T", kAnyType}};
  return op;
}

OpDef WriteOp(OpGeneration generation) {
  return ElementOp(generation, "Writes one element, which must not have been written before.",
                   {{"index", "int32"}, {"value", "T"}}, {{"flow_out", "float"}}, WriteShape,
                   WriteGradient);
}
OpDef ReadOp(OpGeneration generation) {
  return ElementOp(generation, "Reads one element.", {{"index", "int32"}}, {{"value", "dtype"}},
                   ReadShape, ReadGradient);
}
OpDef GatherOp(OpGeneration generation) {
  OpDef op =
      ElementOp(generation, "Reads elements of equal shapes, and stacks them into one tensor.",
                {{"indices", "int32"}}, {{"value", "dtype"}}, GatherShape, GatherGradient);
  op.attrs = {{"element_shape", PartialShape()}};
  return op;
}
OpDef ScatterOp(OpGeneration generation) {
  return ElementOp(generation,
                   "Writes the slices of a tensor along dimension 0 to the given elements.",
                   {{"indices", "int32"}, {"value", "T"}}, {{"flow_out", "float"}}, ScatterShape,
                   ScatterGradient);
}
OpDef PackOp(OpGeneration generation) {
  OpDef op = ElementOp(generation, "Reads all elements, and stacks them into one tensor.", {},
                       {{"value", "dtype"}}, GatherShape, PackGradient);
  op.attrs = {{"element_shape", PartialShape()}};
  return op;
}
OpDef UnpackOp(OpGeneration generation) {
  return ElementOp(generation, "Writes all elements: the slices of a tensor along dimension 0.",
                   {{"value", "T"}}, {{"flow_out", "float"}}, ScatterShape, UnpackGradient);
}
OpDef ConcatOp(OpGeneration generation) {
  OpDef op = ElementOp(generation,
                       "Reads all elements, concatenates them along dimension 0, and returns their "
                       "lengths along it.",
                       {}, {{"value", "dtype"}, {"lengths", "int64"}}, ConcatShape, ConcatGradient);
  op.attrs = {{"element_shape_except0", PartialShape()}};
  return op;
}
OpDef SplitOp(OpGeneration generation) {
  return ElementOp(
      generation, "Splits a tensor along dimension 0, and writes the pieces as elements.",
      {{"value", "T"}, {"lengths", "int64"}}, {{"flow_out", "float"}}, SplitShape, SplitGradient);
}

#define PENSTOCK_GENERATIONS(Kind)                                        \
  OP(TensorArray##Kind) { return Kind##Op(OpGeneration::kReference); }    \
  OP(TensorArray##Kind##V2) { return Kind##Op(OpGeneration::kStrings); }  \
  OP(TensorArray##Kind##V3) { return Kind##Op(OpGeneration::kResource); } \
  KERNEL_ANY_TYPE(TensorArray##Kind, TensorArray##Kind##Kernel);          \
  KERNEL_ANY_TYPE(TensorArray##Kind##V2, TensorArray##Kind##Kernel);      \
  KERNEL_ANY_TYPE(TensorArray##Kind##V3, TensorArray##Kind##Kernel)

PENSTOCK_GENERATIONS(Write);
PENSTOCK_GENERATIONS(Read);
PENSTOCK_GENERATIONS(Gather);
PENSTOCK_GENERATIONS(Scatter);
PENSTOCK_GENERATIONS(Concat);
PENSTOCK_GENERATIONS(Split);
// Only the first generation has this op and TensorArrayUnpack. Later generations use Gather and
// Scatter.
OP(TensorArrayPack) { return PackOp(OpGeneration::kReference); }
OP(TensorArrayUnpack) { return UnpackOp(OpGeneration::kReference); }
KERNEL_ANY_TYPE(TensorArrayPack, TensorArrayGatherKernel);
KERNEL_ANY_TYPE(TensorArrayUnpack, TensorArrayScatterKernel);

}  // namespace
}  // namespace penstock
