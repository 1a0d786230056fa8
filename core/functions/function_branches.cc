// SPDX-License-Identifier: Apache-2.0
//
// Expands If, Case and their stateless forms into Switch, the branches and Merge.
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

// An If or a Case. `choice_op` is the op that selects a branch, Switch or _SwitchN; its output i
// leads to branch i.
struct FunctionExpansion::Branches {
  std::string choice_op;
  DataType choice_type;
  std::vector<std::string> names;  // the name of a branch's call, such as "then"
  std::vector<const tensorflow::NameAttrList*> functions;
  // Set by ExpandBranches: the node, and the types of its data inputs after the condition and of
  // its outputs.
  const NodeProto* node = nullptr;
  std::vector<DataType> in = {}, out = {};

  // Return the names of nodes.
  std::string Part(string_view part) const { return StrCat(node->name(), "/", part); }
  std::string Pred() const { return Part("pred"); }
  std::string Pivot() const { return Part("pivot"); }
  std::string SwitchOf(size_t input) const { return StrCat(node->name(), "/switch_", input); }
  std::string EndOf(size_t branch) const { return StrCat(Part(names[branch]), "_ended"); }
  std::string MergeOf(size_t output) const { return StrCat(node->name(), "/merge_", output); }
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

// Every input passes through a Switch. The graph contains all branches; for each result, a Merge
// takes the value from the branch that ran. A step that needs only one result runs only the nodes
// for this result.
//
//   choice ─► pivot ─► pivot_NAME (nodes without inputs wait for these)
//   x ─► switch_0 ─► branches ─► merge_0 ─► the node itself
Status FunctionExpansion::ExpandBranches(const NodeProto& node, Branches branches, int depth) {
  branches.node = &node;
  branches.in = TypesAttr(node, "Tin");
  branches.out = TypesAttr(node, "Tout");
  const InputNames inputs(node);
  if (inputs.data.size() != branches.in.size() + 1) {
    return InvalidArgument("Tin names ", branches.in.size(), " types, and there are ",
                           inputs.data.size(), " inputs, the condition among them");
  }
  RETURN_IF_ERROR(AddSwitches(branches, inputs));
  std::vector<ReturnedNodes> returned;
  for (size_t taken = 0; taken < branches.names.size(); ++taken) {
    ASSIGN_OR_RETURN(ReturnedNodes nodes, AddBranch(branches, taken, depth));
    returned.push_back(std::move(nodes));
  }
  RETURN_IF_ERROR(AddMerges(branches, returned));
  // If a branch has nodes with effects, a step that needs any result must run them, so the results
  // are not independent then.
  if (!branches.out.empty() && !library_.HasEffects(node)) {
    NodeProto* const results = out_.mutable_node(out_.node_size() - 1);
    (*results->mutable_attr())[kIndependentResultsAttr].set_b(true);
  }
  return OkStatus();
}

// Appends the nodes before the branches: the condition, and a Switch for it and for each input.
Status FunctionExpansion::AddSwitches(const Branches& branches, const InputNames& inputs) {
  const std::string& device = branches.node->device();
  const auto add_choice = [&](const std::string& n, const std::string& value, DataType type) {
    const auto made = Add(n, branches.choice_op, device, {value, branches.Pred()}, type);
    if (made.ok() && branches.choice_op == "_SwitchN") {
      const auto count = static_cast<int64_t>(branches.names.size());
      (*(*made)->mutable_attr())["num_outs"].set_i(count);
    }
    return made.status();
  };
  std::vector<std::string> pred_inputs = {inputs.data[0]};
  for (const std::string& before : inputs.control) pred_inputs.push_back(Control(before));
  RETURN_IF_ERROR(
      Add(branches.Pred(), "Identity", device, pred_inputs, branches.choice_type).status());
  RETURN_IF_ERROR(add_choice(branches.Pivot(), branches.Pred(), branches.choice_type));
  for (size_t i = 0; i < branches.in.size(); ++i) {
    RETURN_IF_ERROR(add_choice(branches.SwitchOf(i), inputs.data[i + 1], branches.in[i]));
  }
  return OkStatus();
}

// Appends branch number `taken`, and a node that runs when the branch has ended. AddMerges merges
// these nodes.
StatusOr<FunctionExpansion::ReturnedNodes> FunctionExpansion::AddBranch(const Branches& branches,
                                                                        size_t taken, int depth) {
  const auto* const function = branches.functions[taken];
  const auto add = [&](const std::string& n, std::vector<std::string> from) {
    return Add(n, "Identity", branches.node->device(), from, branches.choice_type).status();
  };
  const std::string begins = StrCat(branches.Pivot(), "_", branches.names[taken]);
  RETURN_IF_ERROR(add(begins, {Output(branches.Pivot(), taken)}));
  FunctionCall call{.name = branches.Part(branches.names[taken]),
                    .device = branches.node->device(),
                    .function = function->name(),
                    .attrs = &function->attr(),
                    .in_flow = true,
                    .keeps_effects = !RunsOnlyNeededNodes(*branches.node)};
  for (size_t i = 0; i < branches.in.size(); ++i) {
    call.inputs.data.push_back(Output(branches.SwitchOf(i), taken));
  }
  call.inputs.control = {begins};
  ReturnedNodes returned;
  RETURN_IF_ERROR(ExpandCall(call, depth + 1, &returned));
  RETURN_IF_ERROR(CheckTypes("Tout", branches.out, call.function, returned));
  RETURN_IF_ERROR(
      add(branches.EndOf(taken), {Output(branches.Pivot(), taken), Control(call.name)}));
  return returned;
}

// Appends the nodes after the branches: a Merge for each result and one for the ends, and the node
// that takes the place of the original one.
Status FunctionExpansion::AddMerges(const Branches& branches,
                                    const std::vector<ReturnedNodes>& returned) {
  const NodeProto& node = *branches.node;
  const auto merge = [&](const std::string& n, const std::vector<std::string>& from,
                         DataType type) {
    const auto made = Add(n, "Merge", node.device(), from, type);
    if (made.ok()) {
      (*(*made)->mutable_attr())["N"].set_i(static_cast<int64_t>(branches.names.size()));
    }
    return made.status();
  };
  std::vector<std::string> values;
  for (size_t i = 0; i < branches.out.size(); ++i) {
    std::vector<std::string> from;
    for (const ReturnedNodes& branch : returned) from.push_back(branch.values[i]);
    values.push_back(branches.MergeOf(i));
    RETURN_IF_ERROR(merge(values.back(), from, branches.out[i]));
  }
  std::vector<std::string> ends;
  for (size_t i = 0; i < branches.names.size(); ++i) ends.push_back(branches.EndOf(i));
  const std::string ended = branches.Part("ended");
  RETURN_IF_ERROR(merge(ended, ends, branches.choice_type));
  return AddResults({.name = node.name(), .device = node.device()}, values, branches.out, {ended});
}

}  // namespace penstock
