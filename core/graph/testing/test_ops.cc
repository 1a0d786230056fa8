// SPDX-License-Identifier: Apache-2.0
#include "core/graph/testing/test_ops.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op/gradient.h"
#include "core/op/shape_scope.h"

namespace penstock {

namespace {

Status ConstShape(ShapeScope& s) {
  s.set_output(0, s.attr<Tensor>("value").shape());
  return OkStatus();
}

Status MatMulShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape a, s.WithRank(0, 2));
  ASSIGN_OR_RETURN(const PartialShape b, s.WithRank(1, 2));
  if (a.dim(1) >= 0 && b.dim(0) >= 0 && a.dim(1) != b.dim(0)) {
    return InvalidArgument("inner dimensions ", a.dim(1), " and ", b.dim(0), " differ");
  }
  s.set_output(0, PartialShape({a.dim(0), b.dim(1)}));
  return OkStatus();
}

Status ReshapeShape(ShapeScope& s) {
  std::vector<int64_t> dims;
  if (!s.ConstantInts(1, &dims)) return OkStatus();
  ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(dims));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Status HandleShape(ShapeScope& s) {
  s.set_output(0, PartialShape::Scalar());
  s.set_output_element(0, {s.attr<EdgeType>("dtype").dtype, s.attr<PartialShape>("shape")});
  return OkStatus();
}

Status ReadShape(ShapeScope& s) {
  if (s.element(0) != nullptr) s.set_output(0, s.element(0)->shape);
  return OkStatus();
}

std::vector<Gradient> PassOn(const GradientScope& g) { return {g.dy()}; }
std::vector<Gradient> Twice(const GradientScope& g) { return {g.dy(), g.dy()}; }
std::vector<Gradient> MulGradient(const GradientScope& g) {
  return {g.dy() * g.x(1), g.dy() * g.x(0)};
}
std::vector<Gradient> AddNGradient(const GradientScope& g) {
  return std::vector<Gradient>(g.num_inputs(), g.dy());
}
// Returns a sparse gradient.
std::vector<Gradient> GatherGradient(const GradientScope& g) {
  const Gradient rows(g.dy(), g.x(1), ShapeOf(g.x(0)));
  return g.num_inputs() == 3 ? std::vector<Gradient>{rows, {}, {}}
                             : std::vector<Gradient>{rows, {}};
}

std::vector<OpDef> Arithmetic() {
  std::vector<OpDef> ops;
  const auto binary = [&ops](const char* name, GradientFn gradient) {
    ops.push_back({.name = name,
                   .inputs = {{"x", "T"}, {"y", "T"}},
                   .outputs = {{"z", "T"}},
                   .types = {{"T", kNumber}},
                   .shape = BroadcastShape,
                   .gradient = std::move(gradient)});
  };
  const auto unary = [&ops](const char* name, GradientFn gradient) {
    ops.push_back({.name = name,
                   .inputs = {{"x", "T"}},
                   .outputs = {{"y", "T"}},
                   .types = {{"T", kAllTypes}},
                   .shape = SameShape,
                   .gradient = std::move(gradient)});
  };
  const auto same = [&](const char* name, GradientFn gradient) {
    unary(name, std::move(gradient));
    ops.back().passes_through = true;
  };
  binary("AddV2", Twice);
  binary("Mul", MulGradient);
  same("Identity", PassOn);
  unary("Opaque", nullptr);
  unary("OnesLike", NoGradient);
  unary("ZerosLike", NoGradient);
  same("StopGradient", NoGradient);
  unary("WrongCount", [](const GradientScope& g) { return std::vector<Gradient>(3); });
  unary("WrongShape", [](const GradientScope& g) -> std::vector<Gradient> {
    return {g.Const(Tensor(DType::kFloat, {7}))};
  });
  ops.push_back({.name = "AddN",
                 .inputs = {{"inputs", Repeat("N", "T")}},
                 .outputs = {{"sum", "T"}},
                 .types = {{"T", kNumber}},
                 .attrs = {{"N", Ints{.min = 1}}},
                 .shape = SameShape,
                 .gradient = AddNGradient});
  ops.push_back({.name = "MatMul",
                 .inputs = {{"a", "T"}, {"b", "T"}},
                 .outputs = {{"product", "T"}},
                 .types = {{"T", kFloating}},
                 .attrs = {{"transpose_a", false}, {"transpose_b", false}},
                 .shape = MatMulShape});
  ops.push_back({.name = "Two",
                 .inputs = {{"x", "T"}},
                 .outputs = {{"a", "T"}, {"b", "T"}},
                 .types = {{"T", kAllTypes}},
                 .shape = SameShape,
                 .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
                   return {g.has_dy(0) && g.has_dy(1) ? g.dy(0) + g.dy(1)
                                                      : g.dy(g.has_dy(0) ? 0 : 1)};
                 }});
  return ops;
}

std::vector<OpDef> Arrays() {
  return {
      {.name = "Const",
       .outputs = {{"output", "dtype"}},
       .types = {{"dtype", kAllTypes}},
       .attrs = {{"value", Tensors{}}},
       .shape = ConstShape,
       .is_constant = true},
      {.name = "Placeholder",
       .outputs = {{"output", "dtype"}},
       .types = {{"dtype", kAllTypes}},
       .attrs = {{"shape", PartialShape()}},
       .shape = ShapeFromAttr},
      {.name = "NoOp"},
      {.name = "Cast",
       .inputs = {{"x", "SrcT"}},
       .outputs = {{"y", "DstT"}},
       .types = {{"SrcT", kNumber}, {"DstT", kNumber}},
       .shape = SameShape,
       .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
         return {Cast(g.dy(), g.dtype())};
       }},
      {.name = "Shape",
       .inputs = {{"input", "T"}},
       .outputs = {{"output", "out_type"}},
       .types = {{"T", kAllTypes}, {"out_type", kIndex, DType::kInt32}},
       .shape =
           [](ShapeScope& s) {
             s.set_output(0, PartialShape({s.input(0).rank()}));
             return OkStatus();
           },
       .shape_op = ShapeOp::kShape},
      {.name = "Pack",
       .inputs = {{"values", Repeat("N", "T")}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kAllTypes}},
       .attrs = {{"N", Ints{.min = 1}}, {"axis", 0}},
       .shape_op = ShapeOp::kPack},
      {.name = "Reshape",
       .inputs = {{"tensor", "T"}, {"shape", "Tshape"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kAllTypes}, {"Tshape", kIndex}},
       .shape = ReshapeShape},
      {.name = "GatherV2",
       .inputs = {{"params", "Tparams"}, {"indices", "Tindices"}, {"axis", "Taxis"}},
       .outputs = {{"output", "Tparams"}},
       .types = {{"Tparams", kAllTypes}, {"Tindices", kIndex}, {"Taxis", kIndex}},
       .gradient = GatherGradient},
      {.name = "ConcatV2",
       .inputs = {{"values", Repeat("N", "T")}, {"axis", "Tidx"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kAllTypes}, {"Tidx", kIndex}},
       .attrs = {{"N", Ints{.min = 1}}}},
      {.name = "UnsortedSegmentSum",
       .inputs = {{"data", "T"}, {"segment_ids", "Tindices"}, {"num_segments", "Tnum"}},
       .outputs = {{"output", "T"}},
       .types = {{"T", kNumber}, {"Tindices", kIndex}, {"Tnum", kIndex}}},
      {.name = "IdentityN",
       .inputs = {{"input", List("T")}},
       .outputs = {{"output", List("T")}},
       .attrs = {{"T", TypeList{}}}},
      {.name = "SymbolicGradient",
       .inputs = {{"input", List("Tin")}},
       .outputs = {{"output", List("Tout")}},
       .attrs = {{"Tin", TypeList{}}, {"Tout", TypeList{}}, {"f", Functions{}}}},
      {.name = "Any",
       .inputs = {{"values", List("Tin")}},
       .outputs = {{"results", List("Tout")}},
       .attrs = {{"Tin", TypeList{}},
                 {"Tout", TypeList{.min_length = 1}},
                 {"mode", OneOf{{"fast", "safe"}}, "fast"},
                 {"sizes", IntList{}, EmptyList{}},
                 {"ratio", 0.5f},
                 {"label", ""}}},
  };
}

std::vector<OpDef> State() {
  const OpDef loop = {.inputs = {{"data", "T"}},
                      .outputs = {{"output", "T"}},
                      .types = {{"T", kAllTypes}},
                      .shape = SameShape,
                      .gradient = PassOn};
  const auto named = [](OpDef op, const char* name, FlowOp flow) {
    op.name = name;
    op.flow = flow;
    return op;
  };
  OpDef enter = named(loop, "Enter", FlowOp::kEnter);
  enter.attrs = {{"frame_name", Strings{}}};
  return {
      enter,
      named(loop, "Exit", FlowOp::kExit),
      named(loop, "NextIteration", FlowOp::kNextIteration),
      {.name = "LoopCond",
       .inputs = {{"input", "bool"}},
       .outputs = {{"output", "bool"}},
       .flow = FlowOp::kLoopCond},
      {.name = "Switch",
       .inputs = {{"data", "T"}, {"pred", "bool"}},
       .outputs = {{"output_false", "T"}, {"output_true", "T"}},
       .types = {{"T", kAllTypes}},
       .flow = FlowOp::kSwitch},
      {.name = "Merge",
       .inputs = {{"inputs", Repeat("N", "T")}},
       .outputs = {{"output", "T"}, {"value_index", "int32"}},
       .types = {{"T", kAllTypes}},
       .attrs = {{"N", Ints{.min = 1}}},
       .gradient = AddNGradient,
       .flow = FlowOp::kMerge},
      {.name = "VariableV2",
       .outputs = {{"ref", Ref("dtype")}},
       .types = {{"dtype", kAllTypes}},
       .attrs = {{"shape", Shapes{}}, {"container", ""}, {"shared_name", ""}},
       .shape = ShapeFromAttr,
       .stateful = true},
      {.name = "Assign",
       .inputs = {{"ref", Ref("T")}, {"value", "T"}},
       .outputs = {{"output_ref", Ref("T")}},
       .types = {{"T", kAllTypes}},
       .stateful = true},
      {.name = "VarHandleOp",
       .outputs = {{"resource", "resource"}},
       .types = {{"dtype", kAllTypes}},
       .attrs = {{"shape", Shapes{}}, {"container", ""}, {"shared_name", ""}},
       .shape = HandleShape,
       .stateful = true},
      {.name = "ReadVariableOp",
       .inputs = {{"resource", "resource"}},
       .outputs = {{"value", "dtype"}},
       .types = {{"dtype", kAllTypes}},
       .shape = ReadShape,
       .gradient = PassOn},
      {.name = "ResourceGather",
       .inputs = {{"resource", "resource"}, {"indices", "Tindices"}},
       .outputs = {{"output", "dtype"}},
       .types = {{"dtype", kAllTypes}, {"Tindices", kIndex}},
       .gradient = [](const GradientScope& g) -> std::vector<Gradient> {
         return {Gradient(g.dy(), g.x(1), Call("VariableShape", {g.x(0)})), {}};
       }},
      {.name = "VariableShape",
       .inputs = {{"input", "resource"}},
       .outputs = {{"output", "out_type"}},
       .types = {{"out_type", kIndex, DType::kInt32}}},
  };
}

}  // namespace

const Registry& TestOps() {
  static const Registry& registry = *[] {
    std::vector<OpDef> ops = Arithmetic();
    for (std::vector<OpDef> more : {Arrays(), State()}) {
      ops.insert(ops.end(), more.begin(), more.end());
    }
    return new Registry(std::move(ops), {});
  }();
  return registry;
}

std::string Print(const Node& node) {
  std::vector<std::string> inputs;
  for (const Endpoint& input : node.inputs()) {
    if (input.node == nullptr) {
      inputs.push_back("?");
    } else {
      inputs.push_back(input.index == 0 ? input.node->name()
                                        : StrCat(input.node->name(), ":", input.index));
    }
  }
  for (const Node* before : node.control_inputs()) inputs.push_back(StrCat("^", before->name()));
  return StrCat(node.op_name(), "(", absl::StrJoin(inputs, ", "), ")");
}

std::string Print(const Graph& graph) {
  std::string text;
  for (const Node* node : graph.nodes()) StrAppend(&text, node->name(), " = ", Print(*node), "\n");
  return text;
}

}  // namespace penstock
