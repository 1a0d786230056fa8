// SPDX-License-Identifier: Apache-2.0
#include "client/program.h"

#include <map>

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

constexpr char kGlobalStep[] = "global_step";

template <class Predicate>
std::vector<Variable> VariablesWhere(const std::vector<Variable>& variables, Predicate predicate) {
  std::vector<Variable> found;
  for (const Variable& variable : variables) {
    if (predicate(variable)) found.push_back(variable);
  }
  return found;
}

}  // namespace

std::vector<Variable> Program::globals() const {
  return VariablesWhere(variables_, [](const Variable& v) { return !v.local(); });
}
std::vector<Variable> Program::trainable() const {
  return VariablesWhere(variables_, [](const Variable& v) { return v.trainable(); });
}
std::vector<Variable> Program::locals() const {
  return VariablesWhere(variables_, [](const Variable& v) { return v.local(); });
}

Variable Program::GlobalStep(SourceLine line) {
  for (const Variable& variable : variables_) {
    if (variable.name() == kGlobalStep) return variable;
  }
  const auto root = NameScope("");
  return Variable(*this, kGlobalStep, Shape(), Zeros(),
                  {.dtype = DType::kInt64, .trainable = false}, line);
}

Output Program::Group(const Outputs& ops, string_view name, Output beside, SourceLine line) {
  const CallerLine source(*this, line);
  const auto unordered = ClearControlDependencies();
  std::map<std::string, Outputs> by_device;
  for (const Output& op : ops) {
    if (!op.valid()) return {this, -1, 0};
    by_device[NodeOf(op)->requested_device()].push_back(op);
  }
  Outputs groups;
  if (by_device.size() <= 1) {
    groups = ops;
  } else {
    for (const auto& [device, members] : by_device) {
      const auto on = DeviceScope(device);
      const auto after = ControlDependencies(members);
      groups.push_back(CallIn(*this, "NoOp", {}, {}, StrCat(name, "_part")));
    }
  }
  const bool one_device = by_device.size() == 1;
  const auto where = beside.valid() ? ColocateWith(beside)
                                    : DeviceScope(one_device ? by_device.begin()->first : "");
  const auto after = ControlDependencies(groups);
  return CallIn(*this, "NoOp", {}, {}, name);
}

Output Program::Initialize(const std::vector<Variable>& variables, string_view name,
                           SourceLine line) {
  Outputs initializers;
  for (const Variable& variable : variables) initializers.push_back(variable.initializer());
  return Group(initializers, name, {}, line);
}

Output Program::AreInitialized(const std::vector<Variable>& variables, SourceLine line) {
  const CallerLine source(*this, line);
  if (variables.empty()) return Constant(*this, Tensor(DType::kBool, {0}));
  Outputs answers;
  for (const Variable& variable : variables) answers.push_back(variable.IsInitialized());
  return Pack(answers);
}

}  // namespace penstock::client
