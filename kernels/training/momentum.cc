// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent, plain and with momentum.
#include "kernels/training/update_op.h"

namespace penstock {

DENSE_UPDATE(GradientDescent, GradientDescentRule, "var -= alpha * delta", kFloatingOrComplex,
             FLOATING_OR_COMPLEX_TYPES);

template <class C>
struct MomentumRule {
  static RuleSignature Signature() {
    return {.slots = {"accum"}, .before = {"lr"}, .after = {"momentum"}, .flag = "use_nesterov"};
  }
  static constexpr int kSlots = 1;
  MomentumRule(const C* h, bool use_nesterov) : lr(h[0]), momentum(h[1]), nesterov(use_nesterov) {}

  void operator()(C& var, C& accum, C grad) const {
    accum = accum * momentum + grad;
    var -= nesterov ? grad * lr + accum * momentum * lr : accum * lr;
  }

  C lr, momentum;
  bool nesterov;
};
UPDATE(Momentum, MomentumRule, "accum = accum * momentum + grad; var -= lr * accum",
       kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);

template <class C>
struct KerasMomentumRule {
  static RuleSignature Signature() { return MomentumRule<C>::Signature(); }
  static constexpr int kSlots = 1;
  KerasMomentumRule(const C* h, bool use_nesterov)
      : lr(h[0]), momentum(h[1]), nesterov(use_nesterov) {}

  void operator()(C& var, C& accum, C grad) const {
    accum = accum * momentum - grad * lr;
    var += nesterov ? accum * momentum - grad * lr : accum;
  }

  C lr, momentum;
  bool nesterov;
};
constexpr char kKerasMomentumDoc[] = "accum = accum * momentum - grad * lr; var += accum";
PENSTOCK_UPDATE_OP(ResourceApplyKerasMomentum, KerasMomentum, KerasMomentumRule, kKerasMomentumDoc,
                   kResourceApply, kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);
PENSTOCK_UPDATE_OP(ResourceSparseApplyKerasMomentum, KerasMomentum, KerasMomentumRule,
                   kKerasMomentumDoc, kResourceSparseApply, kFloatingOrComplex,
                   FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
