// SPDX-License-Identifier: Apache-2.0
//
// Expands a SymbolicGradient into the body of its function and a node that names the arguments and
// results of the body. Later, when the body is part of a Graph, the compiler adds the gradients
// between them (core/compiler/passes/function_gradients.cc).
#include <string>
#include <utility>
#include <vector>

#include "core/functions/function_expansion.h"
#include "core/functions/functional_node.h"
#include "core/op/private_attrs.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using NodeProto = tensorflow::NodeDef;

// x ─► argument_0 ─► body ─► results ─┐
//      argument_0 ────────────────────┼─► the node itself
//      dy ────────────────────────────┘
Status FunctionExpansion::ExpandGradient(const NodeProto& node, bool in_flow, int depth) {
  ASSIGN_OR_RETURN(const auto* const function, FunctionAttr(node, "f"));
  FunctionCall call{.name = node.name(),
                    .device = node.device(),
                    .function = library_.GradientOf(function->name()),
                    .attrs = &function->attr(),
                    .inputs = InputNames(node),
                    .in_flow = in_flow};
  if (!call.function.empty()) return ExpandCall(std::move(call), depth);
  // Keep a node that names no function of the library: a step that runs it fails.
  if (!library_.Find(function->name()).ok()) return Append(node);
  const std::string other = library_.CalledWithGradient(function->name());
  if (!other.empty()) {
    return Unimplemented("function '", function->name(), "' calls '", other,
                         "', which has a gradient function of its own; give one to '",
                         function->name(), "', too");
  }
  const std::vector<DataType> in = TypesAttr(node, "Tin"), out = TypesAttr(node, "Tout");
  const std::vector<std::string> inputs = std::move(call.inputs.data);
  if (inputs.size() != in.size() || in.size() < out.size()) {
    return InvalidArgument("Tin names ", in.size(), " types and Tout ", out.size(),
                           ", and there are ", inputs.size(), " inputs");
  }
  call.name = StrCat(node.name(), "/function");
  call.function = function->name();
  call.inputs.data.clear();
  for (size_t i = 0; i < out.size(); ++i) {
    // Each argument passes through an Identity, so that other uses of the tensor do not count as
    // part of the function.
    const std::string argument = StrCat(node.name(), "/argument_", i);
    RETURN_IF_ERROR(Add(argument, "Identity", node.device(), {inputs[i]}, out[i]).status());
    call.inputs.data.push_back(argument);
  }
  const InputNames forward = call.inputs;
  ReturnedNodes returned;
  RETURN_IF_ERROR(ExpandCall(std::move(call), depth, &returned));
  RETURN_IF_ERROR(CheckTypes("Tin, behind the arguments,", {in.begin() + out.size(), in.end()},
                             function->name(), returned));
  NodeProto made = node;
  made.clear_input();
  for (const std::string& value : returned.values) made.add_input(value);
  for (const std::string& argument : forward.data) made.add_input(argument);
  for (size_t i = out.size(); i < inputs.size(); ++i) made.add_input(inputs[i]);
  for (const std::string& before : forward.control) made.add_input(Control(before));
  auto& types = *(*made.mutable_attr())["Tin"].mutable_list();
  types.clear_type();
  for (const DataType type : returned.types) types.add_type(type);
  for (const DataType type : in) types.add_type(type);
  (*made.mutable_attr())[kFunctionResultsAttr].set_i(std::ssize(returned.values));
  return Append(std::move(made));
}

}  // namespace penstock
