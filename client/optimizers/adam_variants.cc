// SPDX-License-Identifier: Apache-2.0
#include "client/optimizers/adam_variants.h"

namespace penstock::client {
namespace {

// The order of the hyperparameters in Rule::before, as Adam::Prepare sets them.
enum Position { kBeta1Power, kBeta2Power, kRate, kBeta1, kBeta2, kEpsilon };

Output Norm(Output x) {
  const Output flat = Reshape(x, Constant(*x.sink, Tensor::Vector<int32_t>({-1})));
  return Sqrt(Sum(Square(flat), Constant(*x.sink, Tensor::Scalar<int32_t>(0))));
}

}  // namespace

LazyAdam::LazyAdam(Hyperparameter learning_rate, const Options& options)
    : Adam(learning_rate, options) {}

Output LazyAdam::ApplySparse(const Variable& variable, const Gradient& gradient) {
  return Optimizer::ApplySparse(variable, gradient);
}

AdamW::AdamW(Hyperparameter learning_rate, const DecayOptions& decay, const Options& options)
    : LazyAdam("AdamW", learning_rate, options), decay_(decay) {}

bool AdamW::Decays(const Variable& variable) const {
  return decay_.weight_decay != 0 && (!decay_.decays || decay_.decays(variable));
}

Output AdamW::ApplyDense(const Variable& variable, Output gradient) {
  if (!Decays(variable)) return LazyAdam::ApplyDense(variable, gradient);
  Program& program = variable.program();
  Output decayed;
  {
    const auto device_scope = program.ColocateWith(variable.handle());
    const Output share = rule().before[kRate].Like(gradient) * decay_.weight_decay;
    decayed = variable.AssignSub(variable * share);
  }
  const auto after = program.ControlDependencies({decayed});
  return LazyAdam::ApplyDense(variable, gradient);
}

Output AdamW::ApplySparse(const Variable& variable, const Gradient& gradient) {
  Program& program = variable.program();
  const Gradient rows = DistinctRows(program, gradient);
  if (!Decays(variable)) return LazyAdam::ApplySparse(variable, rows);
  Output decayed;
  {
    const auto device_scope = program.ColocateWith(variable.handle());
    const Output share = rule().before[kRate].Like(rows.values) * decay_.weight_decay;
    const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
    const Output values = variable.ref() ? Gather(variable, rows.indices, zero)
                                         : Call("ResourceGather", {variable.handle(), rows.indices},
                                                {{"dtype", variable.dtype()}});
    decayed = Call(variable.ref() ? "ScatterSub" : "ResourceScatterSub",
                   {variable.handle(), rows.indices, values * share});
  }
  const auto after = program.ControlDependencies({decayed});
  return LazyAdam::ApplySparse(variable, rows);
}

Lamb::Lamb(Hyperparameter learning_rate, const DecayOptions& decay, const Options& options)
    : Adam("LAMB", learning_rate, options), decay_(decay) {}

Output Lamb::ApplyDense(const Variable& variable, Output gradient) {
  Program& program = variable.program();
  const std::vector<Variable> slots = SlotsOf(variable);
  const auto device_scope = program.ColocateWith(variable.handle());
  const double beta1 = options().beta1, beta2 = options().beta2;
  return Step(variable, {slots[0].Assign(slots[0] * beta1 + gradient * (1 - beta1)),
                         slots[1].Assign(slots[1] * beta2 + Square(gradient) * (1 - beta2))});
}

Output Lamb::ApplySparse(const Variable& variable, const Gradient& gradient) {
  return Step(variable, UpdateMoments(variable, gradient));
}

Output Lamb::Step(const Variable& variable, const Outputs& moments) {
  Program& program = variable.program();
  const std::vector<Variable> slots = SlotsOf(variable);
  const auto device_scope = program.ColocateWith(variable.handle());
  const auto after = program.ControlDependencies(moments);
  const Output w = variable;
  const std::vector<Hyperparameter>& h = rule().before;
  Output step = (slots[0] / (1 - h[kBeta1Power].Like(w))) /
                (Sqrt(slots[1] / (1 - h[kBeta2Power].Like(w))) + h[kEpsilon].Like(w));
  if (!decay_.decays || decay_.decays(variable)) step = step + w * decay_.weight_decay;
  const Output weight_norm = Norm(w), step_norm = Norm(step);
  const Output zero = ConstantLike(weight_norm, 0);
  const Output both_positive = LogicalAnd(Greater(weight_norm, zero), Greater(step_norm, zero));
  const Output ratio =
      Select(both_positive, Call("DivNoNan", {weight_norm, step_norm}), OnesLike(weight_norm));
  return variable.AssignSub(step * (ratio * h[kRate].Like(w)));
}

}  // namespace penstock::client
