// SPDX-License-Identifier: Apache-2.0
#include "core/functions/function_library.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/wire/attr_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

// IsCall and the functions below compare names, because these ops have no OpDef with traits: an
// import replaces their nodes by the nodes of their functions.
bool IsCall(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}
bool IsIf(const std::string& op) { return op == "If" || op == "StatelessIf"; }
bool IsWhile(const std::string& op) { return op == "While" || op == "StatelessWhile"; }
bool IsCase(const std::string& op) { return op == "Case" || op == "StatelessCase"; }
bool IsFor(const std::string& op) { return op == "For"; }
bool IsRemoteCall(const std::string& op) { return op == "RemoteCall"; }
bool IsGradient(const std::string& op) { return op == "SymbolicGradient"; }
bool IsFunctional(const std::string& op) {
  return IsCall(op) || IsIf(op) || IsCase(op) || IsWhile(op) || IsFor(op) || IsRemoteCall(op) ||
         IsGradient(op);
}

bool RunsOnlyNeededNodes(const NodeProto& node) {
  const auto lowered = node.attr().find("_lower_using_switch_merge");
  return lowered != node.attr().end() && lowered->second.b();
}

std::vector<std::string> NamedFunctions(const NodeProto& node) {
  std::vector<std::string> names;
  for (const auto& [name, attr] : node.attr()) {
    if (attr.value_case() == tensorflow::AttrValue::kFunc) names.push_back(attr.func().name());
    for (const auto& function : attr.list().func()) names.push_back(function.name());
  }
  return names;
}

FunctionLibrary::FunctionLibrary(const tensorflow::GraphDef& graph, const Registry& registry)
    : registry_(registry) {
  for (const FunctionProto& function : graph.library().function()) {
    functions_.emplace(function.signature().name(), &function);
  }
  for (const tensorflow::GradientDef& gradient : graph.library().gradient()) {
    gradients_.emplace(gradient.function_name(), gradient.gradient_func());
  }
  with_effects_ = FindFunctionsWithEffects();
}

std::string FunctionLibrary::GradientOf(const std::string& function) const {
  const auto found = gradients_.find(function);
  return found == gradients_.end() ? "" : found->second;
}

std::string FunctionLibrary::CalledWithGradient(const std::string& function) const {
  std::set<std::string> seen = {function};
  std::vector<std::string> left = {function};
  while (!left.empty()) {
    const auto found = functions_.find(left.back());
    left.pop_back();
    if (found == functions_.end()) continue;
    for (const NodeProto& node : found->second->node_def()) {
      std::vector<std::string> called = NamedFunctions(node);
      called.push_back(node.op());
      for (std::string& name : called) {
        if (!seen.insert(name).second) continue;
        if (gradients_.contains(name)) return name;
        left.push_back(std::move(name));
      }
    }
  }
  return "";
}

bool FunctionLibrary::IsStateful(const NodeProto& node) const {
  const OpDef* const op = registry_.FindOp(node.op());
  return op != nullptr && op->stateful && !op->is_placeholder;
}

std::vector<std::string> FunctionLibrary::CalledBy(const NodeProto& node) const {
  if (HasInsteadOfOp(node.op())) return {node.op()};
  if (!IsFunctional(node.op()) || RunsOnlyNeededNodes(node)) return {};
  std::vector<std::string> called = NamedFunctions(node);
  std::erase_if(called, [&](const std::string& name) { return functions_.count(name) == 0; });
  return called;
}

// Starts with the functions that have a stateful node, and goes from each to its callers.
std::set<std::string> FunctionLibrary::FindFunctionsWithEffects() const {
  std::set<std::string> found;
  std::vector<std::string> last;  // functions whose callers have not been visited
  std::map<std::string, std::vector<std::string>> callers;
  for (const auto& [name, function] : functions_) {
    bool stateful = false;
    for (const NodeProto& node : function->node_def()) {
      stateful |= IsStateful(node);
      for (const std::string& called : CalledBy(node)) callers[called].push_back(name);
    }
    if (stateful && found.insert(name).second) last.push_back(name);
  }
  while (!last.empty()) {
    const std::string called = std::move(last.back());
    last.pop_back();
    for (const std::string& caller : callers[called]) {
      if (found.insert(caller).second) last.push_back(caller);
    }
  }
  return found;
}

bool FunctionLibrary::HasEffects(const NodeProto& node) const {
  if (IsStateful(node)) return true;
  const std::vector<std::string> called = CalledBy(node);
  return std::any_of(called.begin(), called.end(),
                     [&](const std::string& name) { return with_effects_.count(name) > 0; });
}

std::vector<std::string> FunctionLibrary::NodesWithEffects(const FunctionProto& function) const {
  std::vector<std::string> nodes;
  if (function.control_ret_size() > 0) {
    for (const auto& [name, node] : function.control_ret()) nodes.push_back(node);
    return nodes;
  }
  if (with_effects_.count(function.signature().name()) == 0) return nodes;
  for (const NodeProto& node : function.node_def()) {
    if (HasEffects(node)) nodes.push_back(node.name());
  }
  return nodes;
}

Status FunctionLibrary::Add(FunctionProto function) {
  const std::string name = function.signature().name();
  auto added = std::make_shared<const FunctionProto>(std::move(function));
  if (!functions_.emplace(name, added.get()).second) {
    return InvalidArgument("there is a function '", name, "', which the loop needs itself");
  }
  const auto& nodes = added->node_def();
  if (std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return HasEffects(n); })) {
    with_effects_.insert(name);
  }
  added_.push_back(std::move(added));
  return OkStatus();
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
