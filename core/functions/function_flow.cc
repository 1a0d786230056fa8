// SPDX-License-Identifier: Apache-2.0
//
// Expands While into the nodes of a loop.
#include <string>
#include <vector>

#include "core/functions/function_expansion.h"
#include "core/functions/functional_node.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using NodeProto = tensorflow::NodeDef;

//   x ─► enter_0 ─► merge_0 ─► cond ─► loop_cond ─► switch_0 ─► exit_0 ─► the node itself
//                      ▲                               │
//                      └──── next_0 ◄──── body ◄───────┘
Status FunctionExpansion::ExpandWhile(const NodeProto& node, int depth) {
  InputNames inputs(node);
  std::vector<DataType> types = TypesAttr(node, "T");
  if (inputs.data.size() != types.size()) {
    return InvalidArgument("T names ", types.size(), " types, and there are ", inputs.data.size(),
                           " inputs");
  }
  const std::vector<DataType> declared = types;
  if (declared.empty()) {
    ASSIGN_OR_RETURN(inputs.data.emplace_back(), AddLoopToken(node));
    types.push_back(tensorflow::DT_BOOL);
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
  for (size_t i = 0; i < declared.size(); ++i) {
    test.inputs.data.push_back(part("merge", i));
    turn.inputs.data.push_back(Output(part("switch", i), 1));
  }
  test.inputs.control = {part("merge", 0)};
  turn.inputs.control = {name("pivot")};
  ReturnedNodes decision, next;
  RETURN_IF_ERROR(ExpandCall(test, depth + 1, &decision));
  if (decision.types.size() != 1) {
    return InvalidArgument("the function '", test.function, "' must return one condition, returns ",
                           decision.types.size(), " tensors");
  }
  std::string condition = test.name;
  if (decision.types[0] != tensorflow::DT_BOOL) {
    condition = name("to_bool");
    RETURN_IF_ERROR(add(condition, "ToBool", {test.name}, decision.types[0]).status());
  }
  RETURN_IF_ERROR(add(name("loop_cond"), "LoopCond", {condition}, tensorflow::DT_INVALID).status());
  std::vector<std::string> values;
  for (size_t i = 0; i < types.size(); ++i) {
    RETURN_IF_ERROR(
        add(part("switch", i), "Switch", {part("merge", i), name("loop_cond")}, types[i]).status());
    RETURN_IF_ERROR(add(part("exit", i), "Exit", {part("switch", i)}, types[i]).status());
    values.push_back(part("exit", i));
  }
  RETURN_IF_ERROR(
      add(name("pivot"), "Identity", {Output(part("switch", 0), 1)}, types[0]).status());
  RETURN_IF_ERROR(ExpandCall(turn, depth + 1, &next));
  RETURN_IF_ERROR(CheckTypes("T", declared, turn.function, next));
  std::vector<std::string> results;
  for (size_t i = 0; i < declared.size(); ++i) results.push_back(Output(turn.name, i));
  std::vector<std::string> ended;  // control inputs of the node itself
  if (declared.empty()) {
    results.push_back(name("turned"));
    RETURN_IF_ERROR(
        add(results[0], "Identity", {name("pivot"), Control(turn.name)}, types[0]).status());
    values.swap(ended);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    RETURN_IF_ERROR(add(part("next", i), "NextIteration", {results[i]}, types[i]).status());
  }
  return AddResults({.name = node.name(), .device = node.device()}, values, declared, ended);
}

// Adds a value that is carried from iteration to iteration. A loop without variables needs it,
// because otherwise nothing would start an iteration.
StatusOr<std::string> FunctionExpansion::AddLoopToken(const NodeProto& node) {
  std::vector<std::string> from;
  for (const std::string& before : InputNames(node).control) from.push_back(Control(before));
  const std::string name = StrCat(node.name(), "/token");
  ASSIGN_OR_RETURN(NodeProto * token,
                   Add(name, "Const", node.device(), from, tensorflow::DT_INVALID));
  (*token->mutable_attr())["dtype"].set_type(tensorflow::DT_BOOL);
  tensorflow::TensorProto* const value = (*token->mutable_attr())["value"].mutable_tensor();
  value->set_dtype(tensorflow::DT_BOOL);
  value->mutable_tensor_shape();
  value->add_bool_val(true);
  return name;
}

}  // namespace penstock
