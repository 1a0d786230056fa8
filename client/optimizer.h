// SPDX-License-Identifier: Apache-2.0
//
// Optimizer: adds to a program the ops that change its variables so that a loss goes down.
// optimizers.h has the methods, such as GradientDescent and Adam.
//
//   GradientDescent optimizer(0.1);
//   Output train = optimizer.Minimize(program, loss);  // run it once per step
//
// Updates run on the variables' devices. A method's state for a variable (its slots) is kept in
// variables on the same device, named "w/Momentum" and so on, as in TensorFlow's checkpoints. One
// optimizer serves one program, which the optimizer borrows from the first call on. Only the thread
// that builds the program may use the optimizer. An invalid argument sets the program's error.
// Errors of the updates' nodes name the line that called Minimize or ApplyGradients.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

// A number, or a tensor whose value changes during training, such as a decaying learning rate.
class Hyperparameter {
 public:
  Hyperparameter(double value) : value_(value) {}     // NOLINT: {0.1} and
  Hyperparameter(Output tensor) : tensor_(tensor) {}  // NOLINT: {rate} should both work
  // Returns the value as a tensor of `like`'s type.
  Output Like(Output like) const;
  // Returns the tensor; not valid if the value is a number.
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

  // Calls ComputeGradients and ApplyGradients, and returns the train op. Each run of the op raises
  // the program's global step by one after the update.
  Output Minimize(Program& program, const LocatedOutput& loss,
                  const std::vector<Variable>& variables = {});

  // Returns one entry for each of `variables` (all trainable ones if empty). The gradient is none()
  // if the loss does not depend on the variable. If the loss depends on none of the variables, sets
  // the program's error.
  std::vector<VariableGradient> ComputeGradients(Program& program, Output loss,
                                                 const std::vector<Variable>& variables = {},
                                                 SourceLine line = {__builtin_FILE(),
                                                                    __builtin_LINE()});
  // Returns an op that runs when every update has been applied. It raises `global_step`, if given,
  // by one.
  Output ApplyGradients(Program& program, const std::vector<VariableGradient>& gradients,
                        const std::optional<Variable>& global_step = std::nullopt,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // The steps of ApplyGradients, for callers that run the updates separately (exactly_once.h). Call
  // BeginUpdates first: it returns the tensors that all updates use. Then call Update for some of
  // the gradients at a time, with `tensors` from BeginUpdates or copies of them. Call FinishUpdates
  // last: the ops that it adds are on the device of the first gradient's variable, and run after
  // `updates`.
  Outputs BeginUpdates(Program& program, const std::vector<VariableGradient>& gradients,
                       SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  Outputs Update(Program& program, const std::vector<VariableGradient>& gradients,
                 const Outputs& tensors, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  Outputs FinishUpdates(Program& program, const Outputs& updates,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  const std::string& name() const { return name_; }
  // Returns the slots of all variables updated so far, in order of creation.
  const std::vector<Variable>& slots() const { return slots_; }

 protected:
  // Describes a method's update op ApplyX(variable, slots, before, gradient, after), where X is
  // `op`, and its sparse form SparseApplyX.
  struct Rule {
    std::string op;
    struct Slot {
      std::string name;
      double initial_value = 0;
    };
    std::vector<Slot> slots = {};
    std::vector<Hyperparameter>
        before = {},
        after = {};  // the hyperparameters, which are the only tensors shared by all updates
    Attrs attrs = {};
  };
  Optimizer(std::string name, Rule rule) : name_(std::move(name)), rule_(std::move(rule)) {}

  // Add the update of one variable, and return its op. `gradient.indices` may contain an index
  // several times.
  virtual Output ApplyDense(const Variable& variable, Output gradient);
  virtual Output ApplySparse(const Variable& variable, const Gradient& gradient);
  // ApplyGradients calls Prepare before it adds the updates, and Finish after that. Prepare sets
  // the hyperparameters of the rule that are read from state; Finish adds the ops that change this
  // state. `first` is the first variable with a gradient, `updates` are the update ops.
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

// Returns a gradient in which each index occurs once, with the sum of the rows that had this index.
Gradient SumRepeatedRows(const Gradient& gradient,
                         SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Returns `gradient` itself if kDistinctAttr (core/op/private_attrs.h) says that no index repeats;
// else SumRepeatedRows(gradient).
Gradient DistinctRows(GraphBuilder& graph, const Gradient& gradient,
                      SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client
