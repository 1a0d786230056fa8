// SPDX-License-Identifier: Apache-2.0
#include "client/step_progress.h"

#include <set>
#include <vector>

namespace penstock::client {
namespace {

// Returns whether `node` is a handle of the variable.
bool IsHandleOf(const Node& node, const Node& variable) {
  if (&node == &variable) return true;
  const std::string* const shared_name = node.attr<std::string>("shared_name");
  return node.op_name() == variable.op_name() && shared_name != nullptr &&
         *shared_name == variable.name();
}

bool OnlyReads(const Node& node) { return node.op().only_reads || node.op().passes_through; }

// Returns whether running `train` runs a node that may change the variable: a node that takes the
// variable's handle and is not a read.
bool MayChange(const Node* train, const Node& variable) {
  std::set<const Node*> seen = {train};
  std::vector<const Node*> left = {train};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    const auto add = [&](const Node* source) {
      if (source != nullptr && seen.insert(source).second) left.push_back(source);
    };
    for (const Endpoint& input : node->inputs()) {
      if (input.node != nullptr && IsHandleOf(*input.node, variable) && !OnlyReads(*node)) {
        return true;
      }
      add(input.node);
    }
    for (const Node* control : node->control_inputs()) add(control);
  }
  return false;
}

bool MayChange(Program& program, Output train) {
  const Output handle = program.GlobalStep().handle();
  // If the program has an error, no step runs.
  if (!train.valid() || !handle.valid()) return true;
  return MayChange(program.NodeOf(train), *program.NodeOf(handle));
}

}  // namespace

StepProgress::StepProgress(Program& program, Output train, int64_t steps_max)
    : train_(train.valid() ? program.NodeOf(train)->name() : ""),
      global_step_name_(program.GlobalStep().name()),
      may_change_(MayChange(program, train)),
      steps_max_(steps_max) {}

Status StepProgress::Add(int64_t global_step, std::string* line) {
  if (global_step != last_) {
    last_ = global_step;
    unchanged_ = 0;
    return OkStatus();
  }
  ++unchanged_;
  const std::string what = StrCat(
      unchanged_, " steps in a row have left ", global_step_name_, " at ", global_step,
      may_change_ ? "" : StrCat(", and train op '", train_, "' has no node that changes it"));
  if (unchanged_ == (may_change_ ? 10 * kWarnAfterSteps : kWarnAfterSteps)) *line = what;
  if (may_change_ || steps_max_ == 0 || unchanged_ < steps_max_) return OkStatus();
  return FailedPrecondition(
      what, ": the training would never end. Give Program::GlobalStep() to ",
      "Optimizer::ApplyGradients (Minimize does), or let the train op add 1 to it. If something ",
      "else raises it now and then, set TrainingOptions::unchanged_steps_max");
}

}  // namespace penstock::client
