// SPDX-License-Identifier: Apache-2.0
//
// Expands If and Case into Switch, the branches and Merge.
#include <string>
#include <utility>
#include <vector>

#include "core/functions/function_expansion.h"
#include "core/functions/functional_node.h"
#include "core/op/independent_results.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using tensorflow::DataType;
using NodeProto = tensorflow::NodeDef;

// The nodes of ExpandBranches choose by `choice_op`, Switch or _SwitchN, whose output i goes to
// branch i.
struct FunctionExpansion::Branches {
  std::string choice_op;
  DataType choice_type;
  std::vector<std::string> names;  // the name of a branch's call, such as "then"
  std::vector<const tensorflow::NameAttrList*> functions;
};

Status FunctionExpansion::ExpandIf(const NodeProto& node, int depth) {
  Branches branches{
      .choice_op = "Switch", .choice_type = tensorflow::DT_BOOL, .names = {"else", "then"}};
  for (const std::string& name : branches.names) {
    ASSIGN_OR_RETURN(const auto* function, FunctionAttr(node, StrCat(name, "_branch")));
    branches.functions.push_back(function);
  }
  const auto type = node.attr().find("Tcond");
  if (type == node.attr().end()) return InvalidArgument("there is no attribute 'Tcond'");
  if (type->second.type() == tensorflow::DT_BOOL) return ExpandBranches(node, branches, depth);
  if (node.input().empty()) return InvalidArgument("there is no condition among the inputs");
  NodeProto with_bool = node;
  with_bool.set_input(0, StrCat(node.name(), "/to_bool"));
  RETURN_IF_ERROR(
      Add(with_bool.input(0), "ToBool", node.device(), {node.input(0)}, type->second.type())
          .status());
  return ExpandBranches(with_bool, branches, depth);
}

Status FunctionExpansion::ExpandCase(const NodeProto& node, int depth) {
  Branches branches{.choice_op = "_SwitchN", .choice_type = tensorflow::DT_INT32};
  const auto attr = node.attr().find("branches");
  if (attr == node.attr().end() || attr->second.list().func().empty()) {
    return InvalidArgument("attribute 'branches' is no list of functions");
  }
  for (const tensorflow::NameAttrList& function : attr->second.list().func()) {
    branches.names.push_back(StrCat("branch_", branches.names.size()));
    branches.functions.push_back(&function);
  }
  return ExpandBranches(node, branches, depth);
}

// Every input goes through a Switch. The graph contains all branches, and a Merge for each result
// takes it from the branch that ran. A step that needs only one result runs no nodes for the
// others.
//
//   choice ─► pivot ─► pivot_NAME (nodes without inputs wait for these)
//   x ─► switch_0 ─► branches ─► merge_0 ─► the node itself
Status FunctionExpansion::ExpandBranches(const NodeProto& node, const Branches& branches,
                                         int depth) {
  const InputNames inputs(node);
  const std::vector<DataType> in = TypesAttr(node, "Tin"), out = TypesAttr(node, "Tout");
  if (inputs.data.size() != in.size() + 1) {
    return InvalidArgument("Tin names ", in.size(), " types, and there are ", inputs.data.size(),
                           " inputs, the condition among them");
  }
  const int64_t count = static_cast<int64_t>(branches.names.size());
  const auto name = [&](const char* part) { return StrCat(node.name(), "/", part); };
  const auto add = [&](const std::string& n, const char* op, std::vector<std::string> from,
                       DataType type) { return Add(n, op, node.device(), from, type).status(); };
  const auto add_choice = [&](const std::string& n, const std::string& value, const std::string& by,
                              DataType type) {
    const auto made = Add(n, branches.choice_op, node.device(), {value, by}, type);
    if (made.ok() && branches.choice_op == "_SwitchN") {
      (*(*made)->mutable_attr())["num_outs"].set_i(count);
    }
    return made.status();
  };
  std::vector<std::string> pred_inputs = {inputs.data[0]};
  for (const std::string& before : inputs.control) pred_inputs.push_back(Control(before));
  const std::string pred = name("pred"), pivot = name("pivot");
  RETURN_IF_ERROR(add(pred, "Identity", pred_inputs, branches.choice_type));
  RETURN_IF_ERROR(add_choice(pivot, pred, pred, branches.choice_type));
  std::vector<std::string> switches;
  for (size_t i = 0; i < in.size(); ++i) {
    switches.push_back(StrCat(node.name(), "/switch_", i));
    RETURN_IF_ERROR(add_choice(switches[i], inputs.data[i + 1], pred, in[i]));
  }

  std::vector<std::string> ended;
  std::vector<ReturnedNodes> returned(branches.names.size());
  for (size_t taken = 0; taken < branches.names.size(); ++taken) {
    const auto* const function = branches.functions[taken];
    const std::string begins = StrCat(pivot, "_", branches.names[taken]);
    RETURN_IF_ERROR(add(begins, "Identity", {Output(pivot, taken)}, branches.choice_type));
    FunctionCall call{.name = name(branches.names[taken].c_str()),
                      .device = node.device(),
                      .function = function->name(),
                      .attrs = &function->attr(),
                      .in_flow = true,
                      .keeps_effects = !RunsOnlyNeededNodes(node)};
    for (const std::string& s : switches) call.inputs.data.push_back(Output(s, taken));
    call.inputs.control = {begins};
    RETURN_IF_ERROR(ExpandCall(call, depth + 1, &returned[taken]));
    RETURN_IF_ERROR(CheckTypes("Tout", out, call.function, returned[taken]));
    ended.push_back(StrCat(call.name, "_ended"));
    RETURN_IF_ERROR(add(ended.back(), "Identity", {Output(pivot, taken), Control(call.name)},
                        branches.choice_type));
  }

  const auto merge = [&](const std::string& n, std::vector<std::string> from, DataType type) {
    const auto made = Add(n, "Merge", node.device(), from, type);
    if (made.ok()) (*(*made)->mutable_attr())["N"].set_i(count);
    return made.status();
  };
  std::vector<std::string> values;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string n = StrCat(node.name(), "/merge_", i);
    std::vector<std::string> from;
    for (const ReturnedNodes& branch : returned) from.push_back(branch.values[i]);
    RETURN_IF_ERROR(merge(n, from, out[i]));
    values.push_back(n);
  }
  RETURN_IF_ERROR(merge(name("ended"), ended, branches.choice_type));
  RETURN_IF_ERROR(
      AddResults({.name = node.name(), .device = node.device()}, values, out, {name("ended")}));
  // If a branch has effects, a step that needs any result runs them.
  if (!out.empty() && !library_.HasEffects(node)) {
    NodeProto* const results = out_.mutable_node(out_.node_size() - 1);
    (*results->mutable_attr())[kIndependentResultsAttr].set_b(true);
  }
  return OkStatus();
}

}  // namespace penstock
