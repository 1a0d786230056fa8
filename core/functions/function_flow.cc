// SPDX-License-Identifier: Apache-2.0
//
// Expands While and StatelessWhile into the nodes of a loop.
#include <string>
#include <vector>

#include "core/functions/function_expansion.h"
#include "core/functions/functional_node.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using NodeProto = tensorflow::NodeDef;

// The state of the expansion of one While.
struct FunctionExpansion::Loop {
  std::string Part(const char* part) const { return StrCat(node.name(), "/", part); }
  std::string Part(const char* part, size_t i) const {
    return StrCat(node.name(), "/", part, "_", i);
  }

  const NodeProto& node;
  InputNames inputs;
  std::vector<DataType> declared;  // the types of the loop's variables
  // The types of the loop-carried values: `declared`, or that of AddLoopToken's value if there are
  // no variables.
  std::vector<DataType> types;
};

//   x ─► enter_0 ─► merge_0 ─► cond ─► loop_cond ─► switch_0 ─► exit_0 ─► the node itself
//                      ▲                               │
//                      └──── next_0 ◄──── body ◄───────┘
Status FunctionExpansion::ExpandWhile(const NodeProto& node, int depth) {
  Loop loop{node, InputNames(node), TypesAttr(node, "T"), TypesAttr(node, "T")};
  if (loop.inputs.data.size() != loop.types.size()) {
    return InvalidArgument("T names ", loop.types.size(), " types, and there are ",
                           loop.inputs.data.size(), " inputs");
  }
  if (loop.declared.empty()) {
    ASSIGN_OR_RETURN(loop.inputs.data.emplace_back(), AddLoopToken(node));
    loop.types.push_back(tensorflow::DT_BOOL);
  }
  RETURN_IF_ERROR(AddLoopEntry(loop));
  ASSIGN_OR_RETURN(const auto* cond, FunctionAttr(node, "cond"));
  ASSIGN_OR_RETURN(const auto* body, FunctionAttr(node, "body"));
  RETURN_IF_ERROR(AddLoopCondition(loop, *cond, depth));
  RETURN_IF_ERROR(AddLoopSwitches(loop));
  RETURN_IF_ERROR(AddLoopBody(loop, *body, depth));
  std::vector<std::string> values, ended;  // data inputs and control inputs of the node itself
  std::vector<std::string>& exits = loop.declared.empty() ? ended : values;
  for (size_t i = 0; i < loop.types.size(); ++i) exits.push_back(loop.Part("exit", i));
  return AddResults({.name = node.name(), .device = node.device()}, values, loop.declared, ended);
}

// Adds the nodes enter_i and merge_i of each loop-carried value.
Status FunctionExpansion::AddLoopEntry(const Loop& loop) {
  const NodeProto& node = loop.node;
  const auto parallel = node.attr().find("parallel_iterations");
  for (size_t i = 0; i < loop.types.size(); ++i) {
    std::vector<std::string> from = {loop.inputs.data[i]};
    for (const std::string& before : loop.inputs.control) from.push_back(Control(before));
    ASSIGN_OR_RETURN(NodeProto * enter,
                     Add(loop.Part("enter", i), "Enter", node.device(), from, loop.types[i]));
    (*enter->mutable_attr())["frame_name"].set_s(node.name());
    if (parallel != node.attr().end()) {
      (*enter->mutable_attr())["parallel_iterations"] = parallel->second;
    }
    from = {loop.Part("enter", i), loop.Part("next", i)};
    ASSIGN_OR_RETURN(NodeProto * merge,
                     Add(loop.Part("merge", i), "Merge", node.device(), from, loop.types[i]));
    (*merge->mutable_attr())["N"].set_i(2);
  }
  return OkStatus();
}

// Adds the nodes of the function `cond`, and the node loop_cond.
Status FunctionExpansion::AddLoopCondition(const Loop& loop, const tensorflow::NameAttrList& cond,
                                           int depth) {
  const std::string& device = loop.node.device();
  FunctionCall test = CallInLoop(loop, "cond", cond);
  for (size_t i = 0; i < loop.declared.size(); ++i) {
    test.inputs.data.push_back(loop.Part("merge", i));
  }
  test.inputs.control = {loop.Part("merge", 0)};
  ReturnedNodes decision;
  RETURN_IF_ERROR(ExpandCall(test, depth + 1, &decision));
  if (decision.types.size() != 1) {
    return InvalidArgument("the function '", test.function, "' must return one condition, returns ",
                           decision.types.size(), " tensors");
  }
  std::string condition = test.name;
  if (decision.types[0] != tensorflow::DT_BOOL) {
    condition = loop.Part("to_bool");
    RETURN_IF_ERROR(Add(condition, "ToBool", device, {test.name}, decision.types[0]).status());
  }
  return Add(loop.Part("loop_cond"), "LoopCond", device, {condition}, tensorflow::DT_INVALID)
      .status();
}

// Adds the nodes switch_i and exit_i of each loop-carried value, and the node pivot. Nodes of the
// body that have no inputs wait for pivot.
Status FunctionExpansion::AddLoopSwitches(const Loop& loop) {
  const std::string& device = loop.node.device();
  for (size_t i = 0; i < loop.types.size(); ++i) {
    const std::string name = loop.Part("switch", i);
    const DataType type = loop.types[i];
    const std::vector<std::string> from = {loop.Part("merge", i), loop.Part("loop_cond")};
    RETURN_IF_ERROR(Add(name, "Switch", device, from, type).status());
    RETURN_IF_ERROR(Add(loop.Part("exit", i), "Exit", device, {name}, type).status());
  }
  return Add(loop.Part("pivot"), "Identity", device, {Output(loop.Part("switch", 0), 1)},
             loop.types[0])
      .status();
}

// Adds the nodes of the function `body`, and the nodes next_i.
Status FunctionExpansion::AddLoopBody(const Loop& loop, const tensorflow::NameAttrList& body,
                                      int depth) {
  const std::string& device = loop.node.device();
  FunctionCall turn = CallInLoop(loop, "body", body);
  for (size_t i = 0; i < loop.declared.size(); ++i) {
    turn.inputs.data.push_back(Output(loop.Part("switch", i), 1));
  }
  turn.inputs.control = {loop.Part("pivot")};
  ReturnedNodes next;
  RETURN_IF_ERROR(ExpandCall(turn, depth + 1, &next));
  RETURN_IF_ERROR(CheckTypes("T", loop.declared, turn.function, next));
  std::vector<std::string> results;
  for (size_t i = 0; i < loop.declared.size(); ++i) results.push_back(Output(turn.name, i));
  if (loop.declared.empty()) {
    results.push_back(loop.Part("turned"));
    const std::vector<std::string> from = {loop.Part("pivot"), Control(turn.name)};
    RETURN_IF_ERROR(Add(results[0], "Identity", device, from, loop.types[0]).status());
  }
  for (size_t i = 0; i < loop.types.size(); ++i) {
    RETURN_IF_ERROR(
        Add(loop.Part("next", i), "NextIteration", device, {results[i]}, loop.types[i]).status());
  }
  return OkStatus();
}

FunctionCall FunctionExpansion::CallInLoop(const Loop& loop, const char* part,
                                           const tensorflow::NameAttrList& function) {
  return {.name = loop.Part(part),
          .device = loop.node.device(),
          .function = function.name(),
          .attrs = &function.attr(),
          .in_flow = true,
          .keeps_effects = !RunsOnlyNeededNodes(loop.node)};
}

// Adds a constant and returns its name. A loop without variables needs this value, because an
// iteration begins only when a loop-carried value arrives.
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
