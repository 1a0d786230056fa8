// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/callable/function_graph.h"
#include "core/graph/graph_proto.h"
#include "core/wire/attr_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using ArgProto = tensorflow::OpDef::ArgDef;
using FunctionProto = tensorflow::FunctionDef;

StatusOr<const FunctionProto*> Find(const tensorflow::FunctionDefLibrary& library,
                                    const std::string& name) {
  for (const FunctionProto& function : library.function()) {
    if (function.signature().name() == name) return &function;
  }
  return InvalidArgument("there is no function '", name, "' in the library of the graph");
}

StatusOr<DType> TypeOf(const ArgProto& arg, const Attrs& parameters) {
  tensorflow::AttrValue proto;
  proto.set_type(arg.type());
  if (arg.type() == tensorflow::DT_INVALID) {
    const auto found = parameters.find(arg.type_attr());
    const EdgeType* type = found == parameters.end() ? nullptr : found->second.get<EdgeType>();
    if (type == nullptr) return InvalidArgument("the type of '", arg.name(), "' is not known");
    return type->dtype;
  }
  ASSIGN_OR_RETURN(const AttrValue value, AttrFromProto(proto));
  return value.get<EdgeType>()->dtype;
}

}  // namespace

StatusOr<FunctionGraph> FunctionGraph::Make(const std::string& library,
                                            const FunctionName& function) {
  tensorflow::GraphDef def;
  if (!def.mutable_library()->ParseFromString(library)) {
    return InvalidArgument("the library of the node is malformed");
  }
  ASSIGN_OR_RETURN(const FunctionProto* const found, Find(def.library(), function.name));
  const Attrs parameters = function.attrs == nullptr ? Attrs() : *function.attrs;
  FunctionGraph result{.graph = Graph(Registry::Global())};

  tensorflow::NodeDef call;
  call.set_name(kResults);
  call.set_op("PartitionedCall");
  AttrToProto(AttrValue(function), &(*call.mutable_attr())["f"]);
  for (const ArgProto& arg : found->signature().input_arg()) {
    ASSIGN_OR_RETURN(const DType type, TypeOf(arg, parameters));
    tensorflow::NodeDef& node = *def.add_node();
    node.set_name(Parameter(static_cast<int>(result.arg_types.size())));
    node.set_op("Placeholder");
    AttrToProto(AttrValue(type), &(*node.mutable_attr())["dtype"]);
    call.add_input(node.name());
    result.arg_types.push_back(type);
  }
  *def.add_node() = std::move(call);
  for (const ArgProto& arg : found->signature().output_arg()) {
    ASSIGN_OR_RETURN(const DType type, TypeOf(arg, parameters));
    result.result_types.push_back(type);
  }
  RETURN_IF_ERROR(ImportGraph(def, &result.graph));
  return result;
}

}  // namespace penstock
