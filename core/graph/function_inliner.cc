// SPDX-License-Identifier: Apache-2.0
#include "core/graph/function_inliner.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/graph/graph_proto.h"
#include "core/op/registry.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using tensorflow::DataType;
using ArgProto = tensorflow::OpDef::ArgDef;
using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;
using AttrMap = google::protobuf::Map<std::string, tensorflow::AttrValue>;

constexpr int kDepthMax = 100;

bool IsCall(const std::string& op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}
bool IsIf(const std::string& op) { return op == "If" || op == "StatelessIf"; }
bool IsWhile(const std::string& op) { return op == "While" || op == "StatelessWhile"; }
bool IsFunctional(const std::string& op) { return IsCall(op) || IsIf(op) || IsWhile(op); }

// "node:arg:index", an output of a node of a body; "arg" or "node" alone.
struct BodyTensor {
  std::string node, arg;
  int index = 0;

  static StatusOr<BodyTensor> Parse(const std::string& text) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    BodyTensor tensor{.node = parts[0]};
    if (parts.size() == 3) tensor.arg = parts[1];
    if (parts.size() > 3 || (parts.size() > 1 && (!absl::SimpleAtoi(parts.back(), &tensor.index) ||
                                                  tensor.index < 0))) {
      return InvalidArgument("'", text, "' is no tensor of a function");
    }
    return tensor;
  }
};

// Attributes that stand for parameters of the function get their values.
Status FillParameters(const AttrMap& values, AttrMap* attrs);
Status FillParameters(const AttrMap& values, tensorflow::AttrValue* attr) {
  if (attr->value_case() == tensorflow::AttrValue::kPlaceholder) {
    const auto found = values.find(attr->placeholder());
    if (found == values.end()) {
      return InvalidArgument("there is no value for parameter '", attr->placeholder(), "'");
    }
    *attr = tensorflow::AttrValue(found->second);
  } else if (attr->value_case() == tensorflow::AttrValue::kFunc) {
    return FillParameters(values, attr->mutable_func()->mutable_attr());
  }
  return OkStatus();
}
Status FillParameters(const AttrMap& values, AttrMap* attrs) {
  for (auto& [name, attr] : *attrs) RETURN_IF_ERROR(FillParameters(values, &attr));
  return OkStatus();
}

// "loc:@x" means the x of the same body.
void RenameColocation(const std::string& prefix, const std::set<std::string>& body,
                      NodeProto* node) {
  constexpr char kLocation[] = "loc:@";
  const auto found = node->mutable_attr()->find("_class");
  if (found == node->mutable_attr()->end()) return;
  tensorflow::AttrValue kept;
  for (const std::string& entry : found->second.list().s()) {
    const std::string with = absl::StartsWith(entry, kLocation) ? entry.substr(5) : "";
    if (with.empty()) {
      kept.mutable_list()->add_s(entry);
    } else if (body.count(with) > 0) {
      kept.mutable_list()->add_s(StrCat(kLocation, prefix, "/", with));
    }
  }
  if (kept.list().s_size() > 0) {
    found->second = std::move(kept);
  } else {
    node->mutable_attr()->erase(found);
  }
}

// Data inputs and control inputs of a node, apart. Control inputs are without their "^".
struct InputNames {
  explicit InputNames(const NodeProto& node);
  InputNames() = default;
  std::vector<std::string> data, control;
};

class FunctionInliner {
 public:
  FunctionInliner(const tensorflow::GraphDef& graph, const Registry& registry, int64_t nodes_max,
                  tensorflow::GraphDef* out);
  Status Run();

 private:
  // One call, wherever it comes from.
  struct Call {
    std::string name;  // of the node that stands for it, and in front of the names of its body
    std::string device;
    std::string function;
    const AttrMap* attrs = nullptr;  // of the function's own parameters
    InputNames inputs;
  };

  class Body;

  // Appends the node, or what it is replaced by.
  Status Expand(const NodeProto& node, int depth);
  Status ExpandCall(const Call& call, int depth);
  Status ExpandIf(const NodeProto& node, int depth);
  Status ExpandWhile(const NodeProto& node, int depth);

  // The node that stands for a call or a functional op: its values, after `control`.
  Status AddResults(const Call& call, const std::vector<std::string>& values,
                    const std::vector<tensorflow::DataType>& types,
                    const std::vector<std::string>& control);
  // It has to sit where the resource is, wherever it is called from.
  bool UsesResources(const NodeProto& node) const;
  // Appends a node of one of the few ops that calls are replaced by.
  StatusOr<NodeProto*> Add(const std::string& name, const std::string& op,
                           const std::string& device, const std::vector<std::string>& inputs,
                           tensorflow::DataType type);
  Status Append(NodeProto node);

  StatusOr<const FunctionProto*> Find(const std::string& name) const;
  // The type of output argument `arg` of a function that is called with `attrs`.
  static StatusOr<tensorflow::DataType> TypeOf(const tensorflow::OpDef::ArgDef& arg,
                                               const AttrMap& attrs);
  // Which output of a node, counted flatly, is number `index` of its argument `arg`.
  StatusOr<int> OutputIndex(const NodeProto& node, const std::string& arg, int index) const;

  const tensorflow::GraphDef& graph_;
  const Registry& registry_;
  const int64_t nodes_max_;
  tensorflow::GraphDef& out_;
  std::map<std::string, const FunctionProto*> functions_;
};

InputNames::InputNames(const NodeProto& node) {
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) {
      control.push_back(input.substr(1));
    } else {
      data.push_back(input);
    }
  }
}

FunctionInliner::FunctionInliner(const tensorflow::GraphDef& graph, const Registry& registry,
                                 int64_t nodes_max, tensorflow::GraphDef* out)
    : graph_(graph), registry_(registry), nodes_max_(nodes_max), out_(*out) {
  for (const FunctionProto& function : graph.library().function()) {
    functions_.emplace(function.signature().name(), &function);
  }
}

Status FunctionInliner::Run() {
  for (const NodeProto& node : graph_.node()) {
    const Status status = Expand(node, 0);
    if (!status.ok()) return Annotate(status, StrCat("node '", node.name(), "'"));
  }
  *out_.mutable_versions() = graph_.versions();
  return OkStatus();
}

Status FunctionInliner::Expand(const NodeProto& node, int depth) {
  if (depth > kDepthMax) {
    return ResourceExhausted("functions call functions more than ", kDepthMax, " deep");
  }
  if (IsIf(node.op())) return ExpandIf(node, depth);
  if (IsWhile(node.op())) return ExpandWhile(node, depth);
  Call call{.name = node.name(), .device = node.device(), .inputs = InputNames(node)};
  if (IsCall(node.op())) {
    const auto f = node.attr().find("f");
    if (f == node.attr().end() || f->second.value_case() != tensorflow::AttrValue::kFunc) {
      return InvalidArgument("attribute 'f' is no function");
    }
    call.function = f->second.func().name();
    call.attrs = &f->second.func().attr();
    return ExpandCall(call, depth);
  }
  if (registry_.FindOp(node.op()) == nullptr && functions_.count(node.op()) > 0) {
    call.function = node.op();
    call.attrs = &node.attr();
    return ExpandCall(call, depth);
  }
  return Append(node);
}

// The body of a function as one call sees it.
class FunctionInliner::Body {
 public:
  Body(const FunctionInliner& inliner, const Call& call, const FunctionProto& function)
      : inliner_(inliner), call_(call), function_(function) {
    for (const NodeProto& node : function.node_def()) {
      nodes_.emplace(node.name(), &node);
      names_.insert(node.name());
    }
  }

  Status BindArguments() {
    const tensorflow::OpDef& signature = function_.signature();
    const std::vector<std::string>& given = call_.inputs.data;
    if (static_cast<int>(given.size()) != signature.input_arg_size()) {
      return InvalidArgument("function '", call_.function, "' takes ", signature.input_arg_size(),
                             " inputs, the call has ", given.size());
    }
    for (int i = 0; i < signature.input_arg_size(); ++i) {
      const ArgProto& arg = signature.input_arg(i);
      if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) {
        return Unimplemented("function '", call_.function, "': argument '", arg.name(),
                             "' stands for several tensors");
      }
      arguments_.emplace(arg.name(), given[i]);
    }
    return OkStatus();
  }

  std::string Rename(const std::string& node) const { return StrCat(call_.name, "/", node); }

  // Where in the new graph a tensor of the body is.
  StatusOr<std::string> RenameTensor(const std::string& text) const {
    ASSIGN_OR_RETURN(const BodyTensor tensor, BodyTensor::Parse(text));
    const auto argument = arguments_.find(tensor.node);
    if (argument != arguments_.end()) return argument->second;
    const auto node = nodes_.find(tensor.node);
    if (node == nodes_.end()) {
      return InvalidArgument("function '", call_.function, "' has no '", tensor.node, "'");
    }
    int index = tensor.index;
    if (!tensor.arg.empty()) {
      ASSIGN_OR_RETURN(index, inliner_.OutputIndex(*node->second, tensor.arg, tensor.index));
    }
    return StrCat(Rename(tensor.node), ":", index);
  }

  // A node of the body as a node of the new graph.
  StatusOr<NodeProto> Copy(const NodeProto& node) const {
    NodeProto copy = node;
    copy.set_name(Rename(node.name()));
    if (copy.device().empty() && !inliner_.UsesResources(node)) copy.set_device(call_.device);
    RETURN_IF_ERROR(FillParameters(*call_.attrs, copy.mutable_attr()));
    RenameColocation(call_.name, names_, &copy);
    copy.clear_input();
    const InputNames inputs(node);
    bool waits = false;  // for another node of the body, which waits for what the call waits for
    for (const std::string& input : inputs.data) {
      ASSIGN_OR_RETURN(const std::string renamed, RenameTensor(input));
      copy.add_input(renamed);
      waits |= arguments_.count(input.substr(0, input.find(':'))) == 0;
    }
    for (const std::string& before : inputs.control) {
      if (arguments_.count(before) > 0) continue;  // the call has waited for it
      copy.add_input(StrCat("^", Rename(before)));
      waits = true;
    }
    if (waits) return copy;
    for (const std::string& before : call_.inputs.control) copy.add_input(StrCat("^", before));
    return copy;
  }

 private:
  const FunctionInliner& inliner_;
  const Call& call_;
  const FunctionProto& function_;
  std::map<std::string, std::string> arguments_;  // by name: what the call gives for them
  std::map<std::string, const NodeProto*> nodes_;
  std::set<std::string> names_;
};

Status FunctionInliner::ExpandCall(const Call& call, int depth) {
  ASSIGN_OR_RETURN(const FunctionProto* const function, Find(call.function));
  Body body(*this, call, *function);
  RETURN_IF_ERROR(body.BindArguments());
  for (const NodeProto& node : function->node_def()) {
    ASSIGN_OR_RETURN(const NodeProto copy, body.Copy(node));
    RETURN_IF_ERROR(Expand(copy, depth + 1));
  }
  std::vector<std::string> values;
  std::vector<DataType> types;
  for (const ArgProto& arg : function->signature().output_arg()) {
    const auto returned = function->ret().find(arg.name());
    if (returned == function->ret().end()) {
      return InvalidArgument("function '", call.function, "' does not return '", arg.name(), "'");
    }
    ASSIGN_OR_RETURN(std::string value, body.RenameTensor(returned->second));
    values.push_back(std::move(value));
    ASSIGN_OR_RETURN(const DataType type, TypeOf(arg, *call.attrs));
    types.push_back(type);
  }
  std::vector<std::string> control = call.inputs.control;
  for (const auto& [name, node] : function->control_ret()) control.push_back(body.Rename(node));
  return AddResults(call, values, types, control);
}

Status FunctionInliner::AddResults(const Call& call, const std::vector<std::string>& values,
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

StatusOr<NodeProto*> FunctionInliner::Add(const std::string& name, const std::string& op,
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

bool FunctionInliner::UsesResources(const NodeProto& node) const {
  const auto type = node.attr().find("T");
  if (type != node.attr().end() && type->second.type() == tensorflow::DT_RESOURCE) return true;
  const OpDef* const op = registry_.FindOp(node.op());
  return op != nullptr && std::any_of(op->inputs.begin(), op->inputs.end(), [](const ArgDef& arg) {
           return arg.type.type == Name(DType::kResource);
         });
}

Status FunctionInliner::Append(NodeProto node) {
  if (out_.node_size() >= nodes_max_) {
    return ResourceExhausted("with its functions the graph has more than ", nodes_max_, " nodes");
  }
  *out_.add_node() = std::move(node);
  return OkStatus();
}

StatusOr<const FunctionProto*> FunctionInliner::Find(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second;
  return InvalidArgument("there is no function '", name, "' in the graph's library");
}

StatusOr<DataType> FunctionInliner::TypeOf(const ArgProto& arg, const AttrMap& attrs) {
  if (arg.type() != tensorflow::DT_INVALID) return arg.type();
  const auto found = attrs.find(arg.type_attr());
  if (found != attrs.end() && found->second.type() != tensorflow::DT_INVALID) {
    return found->second.type();
  }
  return Unimplemented("the type of '", arg.name(), "' is not known");
}

StatusOr<int> FunctionInliner::OutputIndex(const NodeProto& node, const std::string& arg,
                                           int index) const {
  if (IsFunctional(node.op())) return index;
  const auto function = functions_.find(node.op());
  const OpDef* op = registry_.FindOp(node.op());
  if (op == nullptr && function != functions_.end()) {
    const auto& outputs = function->second->signature().output_arg();
    for (int i = 0; i < outputs.size(); ++i) {
      if (outputs[i].name() == arg) return i + index;
    }
    return InvalidArgument("function '", node.op(), "' has no output '", arg, "'");
  }
  ASSIGN_OR_RETURN(op, registry_.GetOp(node.op()));
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

// If and While as Switch, Merge and the nodes of a loop.

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

// Every input goes through a Switch, both branches are there, and a Merge takes the results of the
// one that ran:
//
//   cond ─► pivot ─► pivot_t, pivot_f            (what nodes without inputs wait for)
//   x ────► switch_0 ─► then, else ─► merge_0 ─► the node itself
Status FunctionInliner::ExpandIf(const NodeProto& node, int depth) {
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
  std::vector<std::string> ended;
  for (size_t taken : {size_t{0}, size_t{1}}) {
    const std::string attr = StrCat(branches[taken], "_branch");
    ASSIGN_OR_RETURN(const auto* function, FunctionAttr(node, attr.c_str()));
    const std::string begins = StrCat(pivot, "_", branches[taken]);
    RETURN_IF_ERROR(add(begins, "Identity", {Output(pivot, taken)}, tensorflow::DT_BOOL));
    Call call{.name = name(branches[taken]),
              .device = node.device(),
              .function = function->name(),
              .attrs = &function->attr()};
    for (const std::string& s : switches) call.inputs.data.push_back(Output(s, taken));
    call.inputs.control = {begins};
    RETURN_IF_ERROR(ExpandCall(call, depth + 1));
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
    RETURN_IF_ERROR(merge(n, {Output(name("else"), i), Output(name("then"), i)}, out[i]));
    values.push_back(n);
  }
  RETURN_IF_ERROR(merge(name("ended"), ended, tensorflow::DT_BOOL));
  return AddResults({.name = node.name(), .device = node.device()}, values, out, {name("ended")});
}

//   x ─► enter_0 ─► merge_0 ─► cond ─► loop_cond ─► switch_0 ─► exit_0 ─► the node itself
//                      ▲                               │
//                      └──── next_0 ◄──── body ◄───────┘
Status FunctionInliner::ExpandWhile(const NodeProto& node, int depth) {
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
  Call test{.name = name("cond"),
            .device = node.device(),
            .function = cond->name(),
            .attrs = &cond->attr()};
  Call turn{.name = name("body"),
            .device = node.device(),
            .function = body->name(),
            .attrs = &body->attr()};
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

}  // namespace

bool CallsFunctions(const tensorflow::GraphDef& graph) {
  std::set<std::string> functions;
  for (const FunctionProto& f : graph.library().function()) functions.insert(f.signature().name());
  for (const NodeProto& node : graph.node()) {
    if (IsFunctional(node.op()) || functions.count(node.op()) > 0) return true;
  }
  return false;
}

Status InlineFunctions(const tensorflow::GraphDef& graph, const Registry& registry,
                       int64_t nodes_max, tensorflow::GraphDef* out) {
  return FunctionInliner(graph, registry, nodes_max, out).Run();
}

}  // namespace penstock
