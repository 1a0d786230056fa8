// SPDX-License-Identifier: Apache-2.0
//
// Expands If and While into Switch, Merge and the nodes of a loop.
#include <string>
#include <vector>

#include "core/functions/function_expansion.h"
#include "core/op/results_apart.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using NodeProto = tensorflow::NodeDef;

namespace {

StatusOr<const tensorflow::NameAttrList*> FunctionAttr(const NodeProto& node, const char* name) {
  const auto found = node.attr().find(name);
  if (found != node.attr().end() && found->second.value_case() == tensorflow::AttrValue::kFunc) {
    return &found->second.func();
  }
  return InvalidArgument("attribute '", name, "' is no function");
}

std::vector<DataType> TypesAttr(const NodeProto& node, const char* name) {
  std::vector<DataType> types;
  const auto found = node.attr().find(name);
  if (found == node.attr().end()) return types;
  for (const int type : found->second.list().type()) types.push_back(static_cast<DataType>(type));
  return types;
}

std::string Output(const std::string& node, size_t index) { return StrCat(node, ":", index); }
std::string Control(const std::string& node) { return StrCat("^", node); }

}  // namespace

// Every input goes through a Switch. The graph contains both branches, and a Merge for each result
// takes it from the branch that ran. A step that needs only one result runs no nodes for the
// others.
//
//   cond ─► pivot ─► pivot_t, pivot_f (nodes without inputs wait for these) x ────► switch_0 ─►
//   then, else ─► merge_0 ─► the node itself
Status FunctionExpansion::ExpandIf(const NodeProto& node, int depth) {
  const InputNames inputs(node);
  const std::vector<DataType> in = TypesAttr(node, "Tin"), out = TypesAttr(node, "Tout");
  const auto cond = node.attr().find("Tcond");
  if (cond == node.attr().end() || cond->second.type() != tensorflow::DT_BOOL) {
    return Unimplemented("conditions that are not of type bool");
  }
  if (inputs.data.size() != in.size() + 1) {
    return InvalidArgument("Tin names ", in.size(), " types, and there are ", inputs.data.size(),
                           " inputs, the condition among them");
  }
  const auto name = [&](const char* part) { return StrCat(node.name(), "/", part); };
  const auto add = [&](const std::string& n, const char* op, std::vector<std::string> from,
                       DataType type) { return Add(n, op, node.device(), from, type).status(); };
  std::vector<std::string> pred_inputs = {inputs.data[0]};
  for (const std::string& before : inputs.control) pred_inputs.push_back(Control(before));
  const std::string pred = name("pred"), pivot = name("pivot");
  RETURN_IF_ERROR(add(pred, "Identity", pred_inputs, tensorflow::DT_BOOL));
  RETURN_IF_ERROR(add(pivot, "Switch", {pred, pred}, tensorflow::DT_BOOL));
  std::vector<std::string> switches;
  for (size_t i = 0; i < in.size(); ++i) {
    switches.push_back(StrCat(node.name(), "/switch_", i));
    RETURN_IF_ERROR(add(switches[i], "Switch", {inputs.data[i + 1], pred}, in[i]));
  }

  const char* const branches[] = {"else", "then"};
  std::vector<std::string> ended, returned[2];
  for (size_t taken : {size_t{0}, size_t{1}}) {
    const std::string attr = StrCat(branches[taken], "_branch");
    ASSIGN_OR_RETURN(const auto* function, FunctionAttr(node, attr.c_str()));
    const std::string begins = StrCat(pivot, "_", branches[taken]);
    RETURN_IF_ERROR(add(begins, "Identity", {Output(pivot, taken)}, tensorflow::DT_BOOL));
    FunctionCall call{.name = name(branches[taken]),
                      .device = node.device(),
                      .function = function->name(),
                      .attrs = &function->attr(),
                      .in_flow = true,
                      .keeps_effects = !RunsOnlyNeededNodes(node)};
    for (const std::string& s : switches) call.inputs.data.push_back(Output(s, taken));
    call.inputs.control = {begins};
    RETURN_IF_ERROR(ExpandCall(call, depth + 1, &returned[taken]));
    if (returned[taken].size() != out.size()) {
      return InvalidArgument("Tout names ", out.size(), " types, and the function '", call.function,
                             "' returns ", returned[taken].size(), " tensors");
    }
    ended.push_back(StrCat(call.name, "_ended"));
    RETURN_IF_ERROR(add(ended.back(), "Identity", {Output(pivot, taken), Control(call.name)},
                        tensorflow::DT_BOOL));
  }

  const auto merge = [&](const std::string& n, std::vector<std::string> from, DataType type) {
    const auto made = Add(n, "Merge", node.device(), from, type);
    if (made.ok()) (*(*made)->mutable_attr())["N"].set_i(2);
    return made.status();
  };
  std::vector<std::string> values;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string n = StrCat(node.name(), "/merge_", i);
    RETURN_IF_ERROR(merge(n, {returned[0][i], returned[1][i]}, out[i]));
    values.push_back(n);
  }
  RETURN_IF_ERROR(merge(name("ended"), ended, tensorflow::DT_BOOL));
  RETURN_IF_ERROR(
      AddResults({.name = node.name(), .device = node.device()}, values, out, {name("ended")}));
  // If a branch has effects, a step that needs any result runs them.
  if (!out.empty() && !library_.HasEffects(node)) {
    NodeProto* const results = out_.mutable_node(out_.node_size() - 1);
    (*results->mutable_attr())[kResultsApartAttr].set_b(true);
  }
  return OkStatus();
}

//   x ─► enter_0 ─► merge_0 ─► cond ─► loop_cond ─► switch_0 ─► exit_0 ─► the node itself
//                      ▲                               │
//                      └──── next_0 ◄──── body ◄───────┘
Status FunctionExpansion::ExpandWhile(const NodeProto& node, int depth) {
  const InputNames inputs(node);
  const std::vector<DataType> types = TypesAttr(node, "T");
  if (types.empty()) return Unimplemented("a loop without variables");
  if (inputs.data.size() != types.size()) {
    return InvalidArgument("T names ", types.size(), " types, and there are ", inputs.data.size(),
                           " inputs");
  }
  const auto name = [&](const char* part) { return StrCat(node.name(), "/", part); };
  const auto part = [&](const char* p, size_t i) { return StrCat(node.name(), "/", p, "_", i); };
  const auto add = [&](const std::string& n, const char* op, std::vector<std::string> from,
                       DataType type) { return Add(n, op, node.device(), from, type); };
  const auto parallel = node.attr().find("parallel_iterations");
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<std::string> from = {inputs.data[i]};
    for (const std::string& before : inputs.control) from.push_back(Control(before));
    ASSIGN_OR_RETURN(NodeProto * enter, add(part("enter", i), "Enter", from, types[i]));
    (*enter->mutable_attr())["frame_name"].set_s(node.name());
    if (parallel != node.attr().end()) {
      (*enter->mutable_attr())["parallel_iterations"] = parallel->second;
    }
    ASSIGN_OR_RETURN(NodeProto * merge,
                     add(part("merge", i), "Merge", {part("enter", i), part("next", i)}, types[i]));
    (*merge->mutable_attr())["N"].set_i(2);
  }

  ASSIGN_OR_RETURN(const auto* cond, FunctionAttr(node, "cond"));
  ASSIGN_OR_RETURN(const auto* body, FunctionAttr(node, "body"));
  FunctionCall test{.name = name("cond"),
                    .device = node.device(),
                    .function = cond->name(),
                    .attrs = &cond->attr(),
                    .in_flow = true,
                    .keeps_effects = !RunsOnlyNeededNodes(node)};
  FunctionCall turn{.name = name("body"),
                    .device = node.device(),
                    .function = body->name(),
                    .attrs = &body->attr(),
                    .in_flow = true,
                    .keeps_effects = !RunsOnlyNeededNodes(node)};
  for (size_t i = 0; i < types.size(); ++i) {
    test.inputs.data.push_back(part("merge", i));
    turn.inputs.data.push_back(Output(part("switch", i), 1));
  }
  test.inputs.control = {part("merge", 0)};
  turn.inputs.control = {name("pivot")};
  RETURN_IF_ERROR(ExpandCall(test, depth + 1));
  RETURN_IF_ERROR(add(name("loop_cond"), "LoopCond", {test.name}, tensorflow::DT_INVALID).status());
  std::vector<std::string> values;
  for (size_t i = 0; i < types.size(); ++i) {
    RETURN_IF_ERROR(
        add(part("switch", i), "Switch", {part("merge", i), name("loop_cond")}, types[i]).status());
    RETURN_IF_ERROR(add(part("exit", i), "Exit", {part("switch", i)}, types[i]).status());
    values.push_back(part("exit", i));
  }
  RETURN_IF_ERROR(
      add(name("pivot"), "Identity", {Output(part("switch", 0), 1)}, types[0]).status());
  RETURN_IF_ERROR(ExpandCall(turn, depth + 1));
  for (size_t i = 0; i < types.size(); ++i) {
    RETURN_IF_ERROR(
        add(part("next", i), "NextIteration", {Output(turn.name, i)}, types[i]).status());
  }
  return AddResults({.name = node.name(), .device = node.device()}, values, types, {});
}

}  // namespace penstock
