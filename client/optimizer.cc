// SPDX-License-Identifier: Apache-2.0
#include "client/optimizer.h"

#include "absl/strings/str_join.h"
#include "client/ops/line_scope.h"
#include "core/op/private_attrs.h"

namespace penstock::client {
namespace {

std::string NamesOf(const std::vector<Variable>& variables) {
  return absl::StrJoin(variables, ", ",
                       [](std::string* out, const Variable& v) { StrAppend(out, v.name()); });
}

// Returns whether output `index` has the elements of input `index`, in the same order. Returns
// false for a view of another type, such as Bitcast's output, and for a placeholder, to which any
// value may be fed.
bool HasElementsOfInput(const Node& node, int index) {
  const OpDef& op = node.op();
  const bool is_view = op.is_view || (op.passes_through && index == 0);
  return is_view && !op.is_placeholder && node.output_type(index) == node.input_type(index);
}

// If `indices` is a reshape of a tensor whose elements are known to be distinct, returns that
// tensor; else an invalid output. That tensor may already be on the device that needs it, because
// other nodes use it, too.
Output DistinctIndices(GraphBuilder& graph, Output indices) {
  const Node* node = graph.NodeOf(indices);
  while (node != nullptr && HasElementsOfInput(*node, indices.index)) {
    const Endpoint input = node->input(indices.index);
    node = input.node;
    indices = graph.OutputOf(node, input.index);
  }
  if (node == nullptr || !indices.shape().known_rank() || indices.shape().rank() != 1) return {};
  const bool distinct =
      node->attrs().contains(kDistinctAttr) || (node->op().distinct && indices.index == 0);
  return distinct ? indices : Output();
}

}  // namespace

Output Hyperparameter::Like(Output like) const {
  return tensor_.valid() ? Cast(tensor_, like.dtype()) : ConstantLike(like, value_);
}

Gradient SumRepeatedRows(const Gradient& gradient, SourceLine line) {
  const CallerLine source(gradient.values, line);
  const Outputs unique = CallN("Unique", {gradient.indices}, {{"out_idx", DType::kInt32}});
  const Output sums = Call("UnsortedSegmentSum", {gradient.values, unique[1], SizeOf(unique[0])});
  return Gradient(sums, unique[0], gradient.dense_shape);
}

Gradient DistinctRows(GraphBuilder& graph, const Gradient& gradient, SourceLine line) {
  const Output indices = DistinctIndices(graph, gradient.indices);
  if (!indices.valid()) return SumRepeatedRows(gradient, line);
  return Gradient(gradient.values, indices, gradient.dense_shape);
}

std::vector<VariableGradient> Optimizer::ComputeGradients(Program& program, Output loss,
                                                          const std::vector<Variable>& variables,
                                                          SourceLine line) {
  const CallerLine source(program, line);
  const std::vector<Variable> wanted = variables.empty() ? program.trainable() : variables;
  Outputs handles;
  for (const Variable& variable : wanted) handles.push_back(variable.handle());
  const std::vector<Gradient> gradients = Gradients(program, {loss}, handles);
  std::vector<VariableGradient> result;
  bool any = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    any |= !gradients[i].none();
    result.push_back({gradients[i], wanted[i]});
  }
  if (!any) {
    program.Fail(InvalidArgument(name_, ": the loss '", loss.name(),
                                 "' depends on none of the variables to train: ",
                                 wanted.empty() ? "there are none" : NamesOf(wanted)));
  }
  return result;
}

Outputs Optimizer::BeginUpdates(Program& program, const std::vector<VariableGradient>& gradients,
                                SourceLine line) {
  const CallerLine source(program, line);
  const auto scope = program.NameScope(name_);
  for (const VariableGradient& g : gradients) {
    if (g.gradient.none()) continue;
    Prepare(program, g.variable);
    break;
  }
  Outputs tensors;
  for (const auto* list : {&rule_.before, &rule_.after}) {
    for (const Hyperparameter& h : *list) {
      if (h.tensor().valid()) tensors.push_back(h.tensor());
    }
  }
  return tensors;
}

Outputs Optimizer::Update(Program& program, const std::vector<VariableGradient>& gradients,
                          const Outputs& tensors, SourceLine line) {
  const CallerLine source(program, line);
  const auto scope = program.NameScope(name_);
  const Rule rule = rule_;
  size_t next = 0;
  for (auto* list : {&rule_.before, &rule_.after}) {
    for (Hyperparameter& h : *list) {
      if (h.tensor().valid()) h = tensors[next++];
    }
  }
  Outputs updates;
  for (const VariableGradient& g : gradients) {
    if (!g.gradient.none()) updates.push_back(Apply(g.variable, g.gradient));
  }
  rule_ = rule;
  return updates;
}

Outputs Optimizer::FinishUpdates(Program& program, const Outputs& updates, SourceLine line) {
  const CallerLine source(program, line);
  const auto scope = program.NameScope(name_);
  const bool any = program.status().ok() && !updates.empty();
  return any ? Finish(program, updates) : updates;
}

Output Optimizer::ApplyGradients(Program& program, const std::vector<VariableGradient>& gradients,
                                 const std::optional<Variable>& global_step, SourceLine line) {
  const CallerLine source(program, line);
  const Outputs tensors = BeginUpdates(program, gradients);
  const Outputs updates = FinishUpdates(program, Update(program, gradients, tensors));
  const auto scope = program.NameScope(name_);
  if (!program.status().ok()) return {&program, -1, 0};
  if (!global_step) return program.Group(updates, "update");
  const Output all = program.Group(updates, "update", global_step->handle());
  const auto after = program.ControlDependencies({all});
  const auto device_scope = program.ColocateWith(global_step->handle());
  return global_step->AssignAdd(ConstantLike(global_step->Read(), 1));
}

Output Optimizer::Minimize(Program& program, const LocatedOutput& loss,
                           const std::vector<Variable>& variables) {
  const CallerLine source(program, loss.line());
  const std::vector<VariableGradient> gradients =
      ComputeGradients(program, loss.output(), variables);
  return ApplyGradients(program, gradients, program.GlobalStep());
}

Output Optimizer::Apply(const Variable& variable, const Gradient& gradient) {
  Program& program = variable.program();
  const auto scope = program.NameScope(StrCat("update_", variable.name()));
  if (gradient.sparse()) {
    // Nodes that process the gradient are placed on its device; nodes that update the variable are
    // placed on the variable's device.
    const auto device_scope = program.ColocateWith(gradient.values);
    return ApplySparse(variable, gradient);
  }
  return ApplyDense(variable, gradient.values);
}

Output Optimizer::ApplyDense(const Variable& variable, Output gradient) {
  Program& program = variable.program();
  const std::vector<Variable> slots = SlotsOf(variable);
  const auto device_scope = program.ColocateWith(variable.handle());
  std::vector<NodeInput> inputs = {variable.handle()};
  for (const Variable& slot : slots) inputs.push_back(slot.handle());
  for (const Hyperparameter& h : rule_.before) inputs.push_back(h.Like(gradient));
  inputs.push_back(gradient);
  for (const Hyperparameter& h : rule_.after) inputs.push_back(h.Like(gradient));
  return CallIn(program, StrCat(variable.ref() ? "Apply" : "ResourceApply", rule_.op), inputs,
                rule_.attrs);
}

Output Optimizer::ApplySparse(const Variable& variable, const Gradient& gradient) {
  Program& program = variable.program();
  const Gradient rows = DistinctRows(program, gradient);
  const std::vector<Variable> slots = SlotsOf(variable);
  const auto device_scope = program.ColocateWith(variable.handle());
  std::vector<NodeInput> inputs = {variable.handle()};
  for (const Variable& slot : slots) inputs.push_back(slot.handle());
  for (const Hyperparameter& h : rule_.before) inputs.push_back(h.Like(rows.values));
  inputs.push_back(rows.values);
  inputs.push_back(rows.indices);
  for (const Hyperparameter& h : rule_.after) inputs.push_back(h.Like(rows.values));
  return CallIn(program, StrCat(variable.ref() ? "SparseApply" : "ResourceSparseApply", rule_.op),
                inputs, rule_.attrs);
}

Variable Optimizer::NewState(const Variable& beside, const std::string& name, const Shape& shape,
                             double initial_value, const std::optional<VariablePart>& part) {
  Program& program = beside.program();
  const auto root = program.NameScope("");
  const auto device_scope = program.ColocateWith(beside.handle());
  slots_.emplace_back(program, name, shape, Filled(initial_value),
                      VariableOptions{.dtype = beside.dtype(),
                                      .trainable = false,
                                      .local = beside.local(),
                                      .ref = beside.ref(),
                                      .part = part},
                      beside.source_line());
  return slots_.back();
}

std::vector<Variable> Optimizer::SlotsOf(const Variable& variable) {
  const auto known = slots_by_variable_.find(variable.name());
  if (known != slots_by_variable_.end()) return known->second;
  std::vector<Variable> slots;
  if (!rule_.slots.empty() && !variable.shape().fully_known()) {
    variable.program().Fail(InvalidArgument(name_, ": variable '", variable.name(), "' has shape ",
                                            variable.shape().ToString(),
                                            "; its slots need every dimension known"));
    return std::vector<Variable>(rule_.slots.size(), variable);
  }
  for (const Rule::Slot& slot : rule_.slots) {
    std::optional<VariablePart> part = variable.part();
    if (part) StrAppend(&part->whole_name, "/", slot.name);
    slots.push_back(NewState(variable, StrCat(variable.name(), "/", slot.name),
                             variable.shape().ToShape(), slot.initial_value, part));
  }
  return slots_by_variable_[variable.name()] = slots;
}

}  // namespace penstock::client
