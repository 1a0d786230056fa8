// SPDX-License-Identifier: Apache-2.0
#include "client/replicate.h"

#include "client/device_setter.h"
#include "client/ops/line_scope.h"
#include "core/gradients/gradients.h"

namespace penstock::client {
namespace {

// Returns the mean of the gradients of `variable` over `towers` towers. A missing gradient counts
// as zero; if all are missing, returns none.
Gradient Average(const Variable& variable, const std::vector<Gradient>& parts, double towers) {
  std::vector<Gradient> given;
  for (const Gradient& part : parts) {
    if (!part.none()) given.push_back(part);
  }
  if (given.empty() || parts.size() == 1) return parts[0];
  const auto device_scope = variable.program().ColocateWith(variable.handle());
  Gradient sum = SumGradients(given);
  sum.values = sum.values / towers;
  return sum;
}

}  // namespace

Towers BuildTowers(Program& program, Optimizer& optimizer, const std::vector<std::string>& devices,
                   const std::function<Output(int tower)>& loss, SourceLine line) {
  if (devices.empty()) {
    const CallerLine source(program, line);
    program.Fail(InvalidArgument("towers: no devices given"));
    return {.loss = {&program, -1, 0}};
  }
  const std::vector<Variable> variables = program.trainable();
  std::vector<std::vector<Gradient>> by_variable(variables.size());
  Outputs losses;
  for (size_t tower = 0; tower < devices.size(); ++tower) {
    const auto names = program.NameScope(StrCat("tower_", tower));
    const auto on = program.DeviceFunctionScope(OnDevice(devices[tower]));
    losses.push_back(loss(static_cast<int>(tower)));
    const auto gradients = optimizer.ComputeGradients(program, losses.back(), variables, line);
    for (size_t v = 0; v < variables.size(); ++v) by_variable[v].push_back(gradients[v].gradient);
  }
  const CallerLine source(program, line);
  const double count = static_cast<double>(devices.size());
  Towers towers{.loss = AddN(losses) / count};
  for (size_t v = 0; v < variables.size(); ++v) {
    towers.gradients.push_back({Average(variables[v], by_variable[v], count), variables[v]});
  }
  return towers;
}

}  // namespace penstock::client
