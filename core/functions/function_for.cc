// SPDX-License-Identifier: Apache-2.0
//
// Expands a For into a While, and makes the condition function and the body function of the While.
#include <string>
#include <utility>
#include <vector>

#include "core/functions/function_expansion.h"
#include "core/functions/functional_node.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

namespace {

constexpr DataType kInt = tensorflow::DT_INT32, kLong = tensorflow::DT_INT64;

// Makes a function without parameters.
class FunctionMaker {
 public:
  explicit FunctionMaker(const std::string& name) { made_.mutable_signature()->set_name(name); }

  void AddArgument(const std::string& name, DataType type) {
    auto* const arg = made_.mutable_signature()->add_input_arg();
    arg->set_name(name);
    arg->set_type(type);
  }
  // `tensor`: an argument, or "node:0".
  void AddResult(const std::string& name, DataType type, const std::string& tensor) {
    auto* const arg = made_.mutable_signature()->add_output_arg();
    arg->set_name(name);
    arg->set_type(type);
    (*made_.mutable_ret())[name] = tensor;
  }
  // `type`: the attribute "T"; DT_INVALID for ops that have none.
  NodeProto& AddNode(const std::string& name, const char* op,
                     const std::vector<std::string>& inputs, DataType type = kLong) {
    NodeProto* const node = made_.add_node_def();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    if (type != tensorflow::DT_INVALID) (*node->mutable_attr())["T"].set_type(type);
    return *node;
  }
  tensorflow::TensorProto& AddConst(const std::string& name, DataType type) {
    NodeProto& node = AddNode(name, "Const", {}, tensorflow::DT_INVALID);
    (*node.mutable_attr())["dtype"].set_type(type);
    tensorflow::TensorProto* const value = (*node.mutable_attr())["value"].mutable_tensor();
    value->set_dtype(type);
    value->mutable_tensor_shape();
    return *value;
  }
  void AddCast(const std::string& name, const std::vector<std::string>& inputs, DataType from,
               DataType to) {
    auto& attrs = *AddNode(name, "Cast", inputs, tensorflow::DT_INVALID).mutable_attr();
    attrs["SrcT"].set_type(from);
    attrs["DstT"].set_type(to);
  }
  FunctionProto Take() { return std::move(made_); }

 private:
  FunctionProto made_;
};

// Makes the function (start, limit, delta) -> the same numbers as int64, in which adding delta
// cannot overflow. The function fails unless start equals limit or steps of delta lead from start
// towards limit.
FunctionProto CheckFunction(const std::string& name) {
  FunctionMaker f(name);
  const std::vector<std::string> arguments = {"start", "limit", "delta"};
  for (const std::string& argument : arguments) f.AddArgument(argument, kInt);
  f.AddConst("zero", kInt).add_int_val(0);
  f.AddConst("error", tensorflow::DT_STRING).add_string_val("Invalid start/limit/delta:");
  f.AddNode("equal", "Equal", {"start", "limit"}, kInt);
  f.AddNode("less", "Less", {"start", "limit"}, kInt);
  f.AddNode("up", "Greater", {"delta", "zero:0"}, kInt);
  f.AddNode("down", "Less", {"delta", "zero:0"}, kInt);
  f.AddNode("towards", "SelectV2", {"less:0", "up:0", "down:0"}, tensorflow::DT_BOOL);
  f.AddNode("valid", "LogicalOr", {"equal:0", "towards:0"}, tensorflow::DT_INVALID);
  NodeProto& check = f.AddNode("check", "Assert", {"valid:0", "error:0", "start", "limit", "delta"},
                               tensorflow::DT_INVALID);
  auto* const types = (*check.mutable_attr())["T"].mutable_list();
  for (const DataType type : {tensorflow::DT_STRING, kInt, kInt, kInt}) types->add_type(type);
  for (const std::string& argument : arguments) {
    const std::string cast = StrCat("long_", argument);
    f.AddCast(cast, {argument, "^check"}, kInt, kLong);
    f.AddResult(StrCat(argument, "_out"), kLong, Output(cast, 0));
  }
  return f.Take();
}

// Adds the arguments that both functions of the loop have.
std::vector<std::string> AddLoopArguments(const std::vector<DataType>& types, FunctionMaker* f) {
  std::vector<std::string> values;
  for (const char* argument : {"i", "limit", "delta"}) f->AddArgument(argument, kLong);
  for (size_t i = 0; i < types.size(); ++i) {
    values.push_back(StrCat("value_", i));
    f->AddArgument(values.back(), types[i]);
  }
  return values;
}

// Makes the function (i, limit, delta, values) -> whether i has not reached limit.
FunctionProto ConditionFunction(const std::string& name, const std::vector<DataType>& types) {
  FunctionMaker f(name);
  AddLoopArguments(types, &f);
  f.AddConst("zero", kLong).add_int64_val(0);
  f.AddNode("up", "Greater", {"delta", "zero:0"});
  f.AddNode("below", "Less", {"i", "limit"});
  f.AddNode("above", "Greater", {"i", "limit"});
  f.AddNode("goes_on", "SelectV2", {"up:0", "below:0", "above:0"}, tensorflow::DT_BOOL);
  f.AddResult("condition", tensorflow::DT_BOOL, "goes_on:0");
  return f.Take();
}

// Makes the function (i, limit, delta, values) -> (i + delta, limit, delta, body(i, values)).
FunctionProto IterationFunction(const std::string& name, const std::vector<DataType>& types,
                                const tensorflow::NameAttrList& body) {
  FunctionMaker f(name);
  std::vector<std::string> inputs = AddLoopArguments(types, &f);
  f.AddCast("number", {"i"}, kLong, kInt);
  inputs.insert(inputs.begin(), "number:0");
  NodeProto& call = f.AddNode("call", "StatefulPartitionedCall", inputs, tensorflow::DT_INVALID);
  *(*call.mutable_attr())["f"].mutable_func() = body;
  f.AddNode("next", "AddV2", {"i", "delta"});
  f.AddResult("next_i", kLong, "next:0");
  f.AddResult("same_limit", kLong, "limit");
  f.AddResult("same_delta", kLong, "delta");
  for (size_t i = 0; i < types.size(); ++i) {
    f.AddResult(StrCat("result_", i), types[i], Output("call", i));
  }
  return f.Take();
}

}  // namespace

Status FunctionExpansion::ExpandFor(const NodeProto& node, bool in_flow, int depth) {
  const InputNames inputs(node);
  const std::vector<DataType> types = TypesAttr(node, "T");
  constexpr size_t kRange = 3;  // start, limit, delta
  if (inputs.data.size() != types.size() + kRange) {
    return InvalidArgument("T names ", types.size(), " types, and there are ", inputs.data.size(),
                           " inputs, start, limit and delta among them");
  }
  ASSIGN_OR_RETURN(const auto* const body, FunctionAttr(node, "body"));
  ASSIGN_OR_RETURN(const FunctionProto* const body_function, library_.Find(body->name()));
  const int results = body_function->signature().output_arg_size();
  if (results != static_cast<int>(types.size())) {
    return InvalidArgument("T names ", types.size(), " types, and the function '", body->name(),
                           "' returns ", results, " tensors");
  }
  const auto name = [&](const char* part) { return StrCat(node.name(), "/", part); };
  RETURN_IF_ERROR(library_.Add(CheckFunction(name("check_function"))));
  RETURN_IF_ERROR(library_.Add(ConditionFunction(name("cond_function"), types)));
  RETURN_IF_ERROR(library_.Add(IterationFunction(name("body_function"), types, *body)));

  FunctionCall check{.name = name("range"),
                     .device = node.device(),
                     .function = name("check_function"),
                     .attrs = &node.attr(),
                     .inputs = inputs,
                     .in_flow = in_flow};
  check.inputs.data.resize(kRange);
  RETURN_IF_ERROR(ExpandCall(check, depth + 1));
  NodeProto loop;
  loop.set_name(name("loop"));
  loop.set_device(node.device());
  auto& attrs = *loop.mutable_attr();
  for (size_t i = 0; i < kRange; ++i) {
    loop.add_input(Output(check.name, i));
    attrs["T"].mutable_list()->add_type(kLong);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    loop.add_input(inputs.data[kRange + i]);
    attrs["T"].mutable_list()->add_type(types[i]);
  }
  for (const std::string& before : inputs.control) loop.add_input(Control(before));
  attrs["cond"].mutable_func()->set_name(name("cond_function"));
  attrs["body"].mutable_func()->set_name(name("body_function"));
  RETURN_IF_ERROR(ExpandWhile(loop, depth + 1));
  std::vector<std::string> values;
  for (size_t i = 0; i < types.size(); ++i) values.push_back(Output(loop.name(), kRange + i));
  return AddResults({.name = node.name(), .device = node.device()}, values, types, {loop.name()});
}

}  // namespace penstock
