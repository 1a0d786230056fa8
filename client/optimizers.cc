// SPDX-License-Identifier: Apache-2.0
#include "client/optimizers.h"

namespace penstock::client {

GradientDescent::GradientDescent(Hyperparameter learning_rate)
    : Optimizer("GradientDescent", {.op = "GradientDescent", .before = {learning_rate}}) {}

Output GradientDescent::ApplySparse(const Variable& variable, const Gradient& gradient) {
  // Scattering would also sum repeated rows, but summing them first sends fewer rows.
  const Gradient rows = DistinctRows(variable.program(), gradient);
  const Output change = rows.values * rule().before[0].Like(rows.values);
  const auto device_scope = variable.program().ColocateWith(variable.handle());
  return Call(variable.ref() ? "ScatterSub" : "ResourceScatterSub",
              {variable.handle(), rows.indices, change});
}

Momentum::Momentum(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov)
    : Optimizer("Momentum", {.op = "Momentum",
                             .slots = {{"Momentum"}},
                             .before = {learning_rate},
                             .after = {momentum},
                             .attrs = {{"use_nesterov", use_nesterov}}}) {}

Adagrad::Adagrad(Hyperparameter learning_rate, double initial_accumulator)
    : Optimizer("Adagrad", {.op = "Adagrad",
                            .slots = {{"Adagrad", initial_accumulator}},
                            .before = {learning_rate}}) {}

RmsProp::RmsProp(Hyperparameter learning_rate, const Options& options)
    : Optimizer("RMSProp",
                {.op = "RMSProp",
                 .slots = {{"RMSProp", 1.0}, {"RMSProp_1"}},
                 .before = {learning_rate, options.decay, options.momentum, options.epsilon}}) {}

Adam::Adam(Hyperparameter learning_rate, const Options& options)
    : Adam("Adam", learning_rate, options) {}

Adam::Adam(const std::string& name, Hyperparameter learning_rate, const Options& options)
    : Optimizer(name, {.op = "Adam",
                       .slots = {{name}, {name + "_1"}},
                       .attrs = {{"use_nesterov", options.use_nesterov}}}),
      learning_rate_(learning_rate),
      options_(options) {}

void Adam::Prepare(Program& program, const Variable& first) {
  if (!beta1_power_) {
    beta1_power_ = NewState(first, "beta1_power", Shape(), options_.beta1);
    beta2_power_ = NewState(first, "beta2_power", Shape(), options_.beta2);
  }
  rule().before = {beta1_power_->Read(), beta2_power_->Read(), learning_rate_,
                   options_.beta1,       options_.beta2,       options_.epsilon};
}

Outputs Adam::Finish(Program& program, const Outputs& updates) {
  const Output all = program.Group(updates, "updates", beta1_power_->handle());
  const auto after = program.ControlDependencies({all});
  const auto device_scope = program.ColocateWith(beta1_power_->handle());
  return {beta1_power_->Assign(*beta1_power_ * options_.beta1),
          beta2_power_->Assign(*beta2_power_ * options_.beta2)};
}

Outputs Adam::UpdateMoments(const Variable& variable, const Gradient& gradient) {
  Program& program = variable.program();
  const Gradient rows = DistinctRows(program, gradient);
  const std::vector<Variable> slots = SlotsOf(variable);
  const auto device_scope = program.ColocateWith(variable.handle());
  const Output like = rows.values;
  // Computes slot = beta * slot + (1 - beta) * g, where g is 0 except in the given rows.
  const auto decay = [&](const Variable& slot, double beta, Output values) -> Output {
    const Output decayed = slot.Assign(slot * ConstantLike(like, beta));
    const auto after = program.ControlDependencies({decayed});
    return Call(slot.ref() ? "ScatterAdd" : "ResourceScatterAdd",
                {slot.handle(), rows.indices, values * (1 - beta)});
  };
  return {decay(slots[0], options_.beta1, like), decay(slots[1], options_.beta2, Square(like))};
}

Output Adam::ApplySparse(const Variable& variable, const Gradient& gradient) {
  Program& program = variable.program();
  const Outputs moments = UpdateMoments(variable, gradient);
  const std::vector<Variable> slots = SlotsOf(variable);
  const auto device_scope = program.ColocateWith(variable.handle());
  const Output like = gradient.values;
  const std::vector<Hyperparameter>& hyperparameters = rule().before;
  const Output rate = hyperparameters[2].Like(like) * Sqrt(1 - hyperparameters[1].Like(like)) /
                      (1 - hyperparameters[0].Like(like));
  const auto after = program.ControlDependencies(moments);
  return variable.AssignSub(rate * slots[0] / (Sqrt(slots[1]) + hyperparameters[5].Like(like)));
}

}  // namespace penstock::client
