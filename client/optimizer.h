// SPDX-License-Identifier: Apache-2.0
//
// Optimizer: adds to a program the ops that change its variables so that a loss goes down. The
// methods are in optimizers.h.
//
//   GradientDescent optimizer(0.1);
//   Output train = optimizer.Minimize(program, loss);  // run it once per step
//
// Updates happen where the variables are; what a method remembers of a variable (its slots) are
// variables beside it, named "w/Momentum" and so on, as in TensorFlow's checkpoints. One optimizer
// serves one program, which it borrows from the first call on. Mistakes become the program's error.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

// A number, or a tensor that changes as training goes on, such as a decaying learning rate.
class Hyperparameter {
 public:
  Hyperparameter(double value) : value_(value) {}     // NOLINT: {0.1} and
  Hyperparameter(Output tensor) : tensor_(tensor) {}  // NOLINT: {rate} should both work
  // As a tensor of `like`'s type.
  Output Like(Output like) const;
  // Not valid if it is a number.
  const Output& tensor() const { return tensor_; }

 private:
  double value_ = 0;
  Output tensor_;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Both steps below. Raises the program's global step by one per update, after it.
  Output Minimize(Program& program, Output loss, const std::vector<Variable>& variables = {});

  // One entry for each of `variables` (all trainable ones if empty); none() for those on which
  // the loss does not depend. It is an error if that is true of every one.
  std::vector<VariableGradient> ComputeGradients(Program& program, Output loss,
                                                 const std::vector<Variable>& variables = {});
  // An op that runs when every update has been applied. `global_step`, if given, is raised by one
  // then.
  Output ApplyGradients(Program& program, const std::vector<VariableGradient>& gradients,
                        const std::optional<Variable>& global_step = std::nullopt);
  // The parts of ApplyGradients, for who runs updates apart from each other (exactly_once.h). First
  // BeginUpdates, which returns the tensors that all updates use. Then Update, for some of the
  // gradients at a time: `tensors` are those of BeginUpdates, or copies of them. FinishUpdates,
  // beside the first gradient's variable, when the `updates` there, and BeginUpdates, have run.
  Outputs BeginUpdates(Program& program, const std::vector<VariableGradient>& gradients);
  Outputs Update(Program& program, const std::vector<VariableGradient>& gradients,
                 const Outputs& tensors);
  Outputs FinishUpdates(Program& program, const Outputs& updates);

  const std::string& name() const { return name_; }
  // The slots of all variables updated so far, in order of creation.
  const std::vector<Variable>& slots() const { return slots_; }

 protected:
  // The op of a method: ApplyX(variable, slots, before, gradient, after) and its sparse form.
  struct Rule {
    std::string op;
    struct Slot {
      std::string name;
      double initial_value = 0;
    };
    std::vector<Slot> slots = {};
    std::vector<Hyperparameter> before = {}, after = {};  // updates use no tensors but these
    Attrs attrs = {};
  };
  Optimizer(std::string name, Rule rule) : name_(std::move(name)), rule_(std::move(rule)) {}

  // Adds one update. `gradient.indices` may repeat.
  virtual Output ApplyDense(const Variable& variable, Output gradient);
  virtual Output ApplySparse(const Variable& variable, const Gradient& gradient);
  // Before and after all updates of one ApplyGradients. `updates` are those ops. What Finish
  // changes is read by Prepare, which makes hyperparameters of the rule of it.
  virtual void Prepare(Program& program, const Variable& first) {}
  virtual Outputs Finish(Program& program, const Outputs& updates) { return updates; }

  Rule& rule() { return rule_; }
  std::vector<Variable> SlotsOf(const Variable& variable);
  Variable NewState(const Variable& beside, const std::string& name, const Shape& shape,
                    double initial_value, const std::optional<VariablePart>& part = std::nullopt);

 private:
  Output Apply(const Variable& variable, const Gradient& gradient);

  const std::string name_;
  Rule rule_;
  std::vector<Variable> slots_;
  std::map<std::string, std::vector<Variable>> slots_by_variable_;
};

// Returns a gradient in which each index stands once, with the sum of the rows that had it.
Gradient SumRepeatedRows(const Gradient& gradient);
// Returns `gradient` itself if kDistinctAttr (core/op/private_attrs.h) says that no index repeats;
// else SumRepeatedRows(gradient).
Gradient DistinctRows(GraphBuilder& graph, const Gradient& gradient);

}  // namespace penstock::client
