// SPDX-License-Identifier: Apache-2.0
#include "core/functions/function_inliner.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_origin.h"
#include "core/functions/function_expansion.h"
#include "core/op/device_name.h"
#include "core/wire/deterministic_bytes.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using ArgProto = tensorflow::OpDef::ArgDef;
using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

namespace {

constexpr int kDepthMax = 100;
// Equal to kFunctionsAttr in core/functions/embedded_functions.h, which describes it.
constexpr char kEmbeddedAttr[] = "_functions";

StatusOr<DataType> TypeOf(const ArgProto& arg, const AttrMap& attrs) {
  if (arg.type() != tensorflow::DT_INVALID) return arg.type();
  const auto found = attrs.find(arg.type_attr());
  if (found != attrs.end() && found->second.type() != tensorflow::DT_INVALID) {
    return found->second.type();
  }
  return Unimplemented("the type of '", arg.name(), "' is not known");
}

// Limits the total bytes of embedded functions, because many nodes may name one large function.
constexpr int64_t kEmbeddedBytesMax = int64_t{1} << 30;

class Embedding {
 public:
  explicit Embedding(const tensorflow::FunctionDefLibrary& library) {
    for (const FunctionProto& function : library.function()) {
      functions_.emplace(function.signature().name(), &function);
    }
    for (const tensorflow::GradientDef& gradient : library.gradient()) {
      gradients_.emplace(gradient.function_name(), &gradient);
    }
  }

  Status Add(NodeProto* node) {
    if (IsFunctional(node->op()) || node->attr().contains(kEmbeddedAttr)) return OkStatus();
    const std::set<std::string> needed = Needed(NamedFunctions(*node));
    if (needed.empty()) return OkStatus();
    const std::string& bytes = Serialized(needed);
    bytes_left_ -= static_cast<int64_t>(bytes.size());
    if (bytes_left_ < 0) {
      return ResourceExhausted("the functions of the graph's nodes take more than ",
                               kEmbeddedBytesMax, " bytes");
    }
    (*node->mutable_attr())[kEmbeddedAttr].set_s(bytes);
    return OkStatus();
  }

 private:
  // Returns the functions of the library among `names`, all functions that they call, and the
  // gradient functions that clients have registered for any of these.
  std::set<std::string> Needed(std::vector<std::string> names) const {
    std::set<std::string> needed;
    while (!names.empty()) {
      const auto found = functions_.find(names.back());
      names.pop_back();
      if (found == functions_.end() || !needed.insert(found->first).second) continue;
      if (const auto gradient = gradients_.find(found->first); gradient != gradients_.end()) {
        names.push_back(gradient->second->gradient_func());
      }
      for (const NodeProto& node : found->second->node_def()) {
        names.push_back(node.op());
        for (std::string& name : NamedFunctions(node)) names.push_back(std::move(name));
      }
    }
    return needed;
  }

  // Returns equal bytes for equal sets, so that equal nodes stay equal.
  const std::string& Serialized(const std::set<std::string>& needed) {
    std::string& bytes = serialized_[needed];
    if (!bytes.empty()) return bytes;
    tensorflow::FunctionDefLibrary library;
    for (const std::string& name : needed) {
      *library.add_function() = *functions_.at(name);
      const auto gradient = gradients_.find(name);
      if (gradient != gradients_.end()) *library.add_gradient() = *gradient->second;
    }
    bytes = DeterministicBytes(library);
    return bytes;
  }

  std::map<std::string, const FunctionProto*> functions_;
  std::map<std::string, const tensorflow::GradientDef*> gradients_;  // by function
  // Serialised libraries, by the names of the functions in them.
  std::map<std::set<std::string>, std::string> serialized_;
  int64_t bytes_left_ = kEmbeddedBytesMax;
};

}  // namespace

FunctionExpansion::FunctionExpansion(const tensorflow::GraphDef& graph, const Registry& registry,
                                     int64_t nodes_max, int64_t bytes_max,
                                     tensorflow::GraphDef* out)
    : graph_(graph),
      library_(graph, registry),
      nodes_max_(nodes_max),
      bytes_max_(bytes_max),
      out_(*out) {}

Status FunctionExpansion::Run() {
  const std::set<std::string> in_flow = library_.NodesInFlow(graph_.node());
  for (const NodeProto& node : graph_.node()) NoteString(node, node.name());
  for (const NodeProto& node : graph_.node()) {
    RETURN_IF_ERROR(InNode(Expand(node, in_flow.count(node.name()) > 0, 0), node.name()));
  }
  *out_.mutable_versions() = graph_.versions();
  return OkStatus();
}

Status FunctionExpansion::Expand(const NodeProto& node, bool in_flow, int depth) {
  if (depth > kDepthMax) {
    return ResourceExhausted("functions call functions more than ", kDepthMax, " deep");
  }
  if (IsIf(node.op())) return ExpandIf(node, depth);
  if (IsCase(node.op())) return ExpandCase(node, depth);
  if (IsWhile(node.op())) return ExpandWhile(node, depth);
  if (IsFor(node.op())) return ExpandFor(node, in_flow, depth);
  if (IsGradient(node.op())) return ExpandGradient(node, in_flow, depth);
  FunctionCall call{
      .name = node.name(), .device = node.device(), .inputs = InputNames(node), .in_flow = in_flow};
  if (IsRemoteCall(node.op())) {
    ASSIGN_OR_RETURN(call.device, TakeTarget(node.device(), &call.inputs));
  }
  if (IsCall(node.op()) || IsRemoteCall(node.op())) {
    const auto f = node.attr().find("f");
    if (f == node.attr().end() || f->second.value_case() != tensorflow::AttrValue::kFunc) {
      return InvalidArgument("attribute 'f' is no function");
    }
    call.function = f->second.func().name();
    call.attrs = &f->second.func().attr();
    return ExpandCall(std::move(call), depth);
  }
  if (library_.HasInsteadOfOp(node.op())) {
    call.function = node.op();
    call.attrs = &node.attr();
    return ExpandCall(std::move(call), depth);
  }
  return Append(node);
}

Status FunctionExpansion::ExpandCall(FunctionCall call, int depth, ReturnedNodes* returned) {
  ASSIGN_OR_RETURN(const FunctionProto* const function, library_.Find(call.function));
  FunctionBody body(library_, call, *function);
  RETURN_IF_ERROR(body.BindArguments());
  RETURN_IF_ERROR(AddBegin(*function, &call));
  const std::set<std::string> in_flow = library_.NodesInFlow(function->node_def());
  for (const NodeProto& node : function->node_def()) NoteString(node, body.Rename(node.name()));
  for (const NodeProto& node : function->node_def()) {
    ASSIGN_OR_RETURN(const NodeProto copy, body.Copy(node));
    RETURN_IF_ERROR(Expand(copy, call.in_flow || in_flow.count(node.name()) > 0, depth + 1));
  }
  std::vector<std::string> values;
  std::vector<DataType> types;
  for (const ArgProto& arg : function->signature().output_arg()) {
    const auto result = function->ret().find(arg.name());
    if (result == function->ret().end()) {
      return InvalidArgument("function '", call.function, "' does not return '", arg.name(), "'");
    }
    ASSIGN_OR_RETURN(std::string value, body.RenameTensor(result->second));
    values.push_back(std::move(value));
    ASSIGN_OR_RETURN(const DataType type, TypeOf(arg, *call.attrs));
    types.push_back(type);
  }
  if (returned != nullptr) *returned = {values, types};
  std::vector<std::string> awaited;
  if (call.keeps_effects) {
    awaited = library_.NodesWithEffects(*function);
  } else {
    for (const auto& [name, node] : function->control_ret()) awaited.push_back(node);
  }
  std::vector<std::string> control = call.inputs.control;
  RETURN_IF_ERROR(AwaitNodes(*function, body, awaited, &call, &control));
  return AddResults(call, values, types, control);
}

void FunctionExpansion::NoteString(const NodeProto& node, const std::string& name) {
  if (node.op() != "Const") return;
  const auto value = node.attr().find("value");
  if (value == node.attr().end() || value->second.tensor().string_val_size() != 1) return;
  strings_.emplace(name, &value->second.tensor().string_val(0));
}

StatusOr<std::string> FunctionExpansion::TakeTarget(const std::string& device,
                                                    InputNames* inputs) const {
  if (inputs->data.empty()) return InvalidArgument("there is no input 'target'");
  const std::string target = inputs->data[0].substr(0, inputs->data[0].find(':'));
  inputs->data.erase(inputs->data.begin());
  const auto found = strings_.find(target);
  if (found == strings_.end()) {
    return Unimplemented("input 'target' must be a constant string, because functions are inlined ",
                         "before a step runs; it is '", target, "'");
  }
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(*found->second));
  ASSIGN_OR_RETURN(const DeviceName own, DeviceName::Parse(device));
  if (!name.job && !name.task) {  // the string names a device of the node's own task
    name.job = own.job;
    name.replica = own.replica;
    name.task = own.task;
  }
  return name.ToString();
}

Status FunctionExpansion::CheckTypes(const char* attr, const std::vector<DataType>& types,
                                     const std::string& function, const ReturnedNodes& returned) {
  if (returned.types.size() != types.size()) {
    return InvalidArgument(attr, " names ", types.size(), " types, and the function '", function,
                           "' returns ", returned.types.size(), " tensors");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (returned.types[i] == types[i]) continue;
    return InvalidArgument("result ", i, " of the function '", function, "' has type ",
                           tensorflow::DataType_Name(returned.types[i]), ", ", attr, " names ",
                           tensorflow::DataType_Name(types[i]));
  }
  return OkStatus();
}

// Nodes without inputs wait for the appended node, because in a loop they would else belong to no
// iteration. The appended node is an Identity of an argument. A control edge from the argument
// itself would not do: it may be a Switch, which runs for both branches.
Status FunctionExpansion::AddBegin(const FunctionProto& function, FunctionCall* call) {
  if (!call->in_flow || !call->inputs.control.empty() || call->inputs.data.empty()) {
    return OkStatus();
  }
  std::set<std::string> arguments;
  for (const ArgProto& arg : function.signature().input_arg()) arguments.insert(arg.name());
  const auto& nodes = function.node_def();
  if (std::none_of(nodes.begin(), nodes.end(),
                   [&](const NodeProto& node) { return HasNoSource(node, arguments); })) {
    return OkStatus();
  }
  return SetBegin(function, call);
}

Status FunctionExpansion::SetBegin(const FunctionProto& function, FunctionCall* call) {
  if (!call->begins.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const DataType type, TypeOf(function.signature().input_arg(0), *call->attrs));
  call->begins = StrCat(call->name, "/_begins");
  return Add(call->begins, "Identity", call->device, {call->inputs.data[0]}, type).status();
}

Status FunctionExpansion::AddResults(const FunctionCall& call,
                                     const std::vector<std::string>& values,
                                     const std::vector<DataType>& types,
                                     const std::vector<std::string>& control) {
  NodeProto node;
  node.set_name(call.name);
  node.set_device(call.device);
  node.set_op(values.empty() ? "NoOp" : "IdentityN");
  for (const std::string& value : values) node.add_input(value);
  for (const std::string& before : control) node.add_input(StrCat("^", before));
  if (!values.empty()) {
    for (const DataType type : types) (*node.mutable_attr())["T"].mutable_list()->add_type(type);
  }
  return Append(std::move(node));
}

StatusOr<NodeProto*> FunctionExpansion::Add(const std::string& name, const std::string& op,
                                            const std::string& device,
                                            const std::vector<std::string>& inputs, DataType type) {
  NodeProto node;
  node.set_name(name);
  node.set_op(op);
  if (type != tensorflow::DT_RESOURCE) node.set_device(device);
  for (const std::string& input : inputs) node.add_input(input);
  if (type != tensorflow::DT_INVALID) (*node.mutable_attr())["T"].set_type(type);
  RETURN_IF_ERROR(Append(std::move(node)));
  return out_.mutable_node(out_.node_size() - 1);
}

Status FunctionExpansion::Append(NodeProto node) {
  if (out_.node_size() >= nodes_max_) {
    return ResourceExhausted("with its functions the graph has more than ", nodes_max_, " nodes");
  }
  bytes_ += static_cast<int64_t>(sizeof(node) + node.ByteSizeLong());
  if (bytes_ > bytes_max_) {
    return ResourceExhausted("with its functions the graph takes more than ", bytes_max_,
                             " bytes, ", out_.node_size(), " nodes so far");
  }
  *out_.add_node() = std::move(node);
  return OkStatus();
}

bool CallsFunctions(const tensorflow::GraphDef& graph) {
  std::set<std::string> functions;
  for (const FunctionProto& f : graph.library().function()) functions.insert(f.signature().name());
  for (const NodeProto& node : graph.node()) {
    if (IsFunctional(node.op()) || functions.count(node.op()) > 0) return true;
    for (const std::string& name : NamedFunctions(node)) {
      if (functions.count(name) > 0) return true;
    }
  }
  return false;
}

Status InlineFunctions(const tensorflow::GraphDef& graph, const Registry& registry,
                       int64_t nodes_max, int64_t bytes_max, tensorflow::GraphDef* out) {
  RETURN_IF_ERROR(FunctionExpansion(graph, registry, nodes_max, bytes_max, out).Run());
  Embedding embedding(graph.library());
  for (NodeProto& node : *out->mutable_node()) {
    RETURN_IF_ERROR(InNode(embedding.Add(&node), node.name()));
  }
  return OkStatus();
}

}  // namespace penstock
