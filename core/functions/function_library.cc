// SPDX-License-Identifier: Apache-2.0
#include "core/functions/function_library.h"

#include <algorithm>
#include <vector>

#include "core/wire/attr_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

bool IsCall(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}
bool IsIf(const std::string& op) { return op == "If" || op == "StatelessIf"; }
bool IsWhile(const std::string& op) { return op == "While" || op == "StatelessWhile"; }
bool IsFunctional(const std::string& op) { return IsCall(op) || IsIf(op) || IsWhile(op); }

FunctionLibrary::FunctionLibrary(const tensorflow::GraphDef& graph, const Registry& registry)
    : registry_(registry) {
  for (const FunctionProto& function : graph.library().function()) {
    functions_.emplace(function.signature().name(), &function);
  }
}

StatusOr<const FunctionProto*> FunctionLibrary::Find(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second;
  return InvalidArgument("there is no function '", name, "' in the graph's library");
}

bool FunctionLibrary::HasInsteadOfOp(const std::string& name) const {
  return registry_.FindOp(name) == nullptr && functions_.count(name) > 0;
}

bool FunctionLibrary::UsesResources(const NodeProto& node) const {
  const auto type = node.attr().find("T");
  if (type != node.attr().end() && type->second.type() == tensorflow::DT_RESOURCE) return true;
  const OpDef* const op = registry_.FindOp(node.op());
  return op != nullptr && std::any_of(op->inputs.begin(), op->inputs.end(), [](const ArgDef& arg) {
           return arg.type.type == Name(DType::kResource);
         });
}

StatusOr<int> FunctionLibrary::OutputIndex(const NodeProto& node, const std::string& arg,
                                           int index) const {
  if (IsFunctional(node.op())) return index;
  if (HasInsteadOfOp(node.op())) {
    const auto& outputs = functions_.at(node.op())->signature().output_arg();
    for (int i = 0; i < outputs.size(); ++i) {
      if (outputs[i].name() == arg) return i + index;
    }
    return InvalidArgument("function '", node.op(), "' has no output '", arg, "'");
  }
  ASSIGN_OR_RETURN(const OpDef* const op, registry_.GetOp(node.op()));
  Attrs attrs;
  for (const auto& [name, proto] : node.attr()) {
    StatusOr<AttrValue> value = AttrFromProto(proto);
    if (value.ok()) attrs.emplace(name, *std::move(value));
  }
  RETURN_IF_ERROR(CompleteAttrs(*op, &attrs));
  std::vector<EdgeType> before;
  for (const ArgDef& output : op->outputs) {
    if (output.name == arg) return static_cast<int>(before.size()) + index;
    RETURN_IF_ERROR(AppendArgTypes(output, attrs, &before));
  }
  return InvalidArgument("op '", node.op(), "' has no output '", arg, "'");
}

std::set<std::string> FunctionLibrary::NodesInFlow(
    const google::protobuf::RepeatedPtrField<tensorflow::NodeDef>& nodes) const {
  std::map<std::string, std::vector<std::string>> consumers;
  std::vector<std::string> found;  // nodes whose consumers have not been visited
  for (const tensorflow::NodeDef& node : nodes) {
    for (const std::string& input : node.input()) {
      const bool control = !input.empty() && input[0] == '^';
      consumers[control ? input.substr(1) : input.substr(0, input.find(':'))].push_back(
          node.name());
    }
    const OpDef* const op = registry_.FindOp(node.op());
    if (op != nullptr && (op->flow == FlowOp::kSwitch || op->flow == FlowOp::kEnter)) {
      found.push_back(node.name());
    }
  }
  std::set<std::string> in_flow(found.begin(), found.end());
  while (!found.empty()) {
    const std::string source = std::move(found.back());
    found.pop_back();
    for (const std::string& node : consumers[source]) {
      if (in_flow.insert(node).second) found.push_back(node);
    }
  }
  return in_flow;
}

}  // namespace penstock
