// SPDX-License-Identifier: Apache-2.0
//
// Rules that divide by the root of summed squares: Adagrad, Adagrad with dual averaging, Adadelta.
#include <cmath>

#include "kernels/training/sign.h"
#include "kernels/training/update_op.h"

namespace penstock {

UPDATE(Adagrad, AdagradRule, "accum += grad^2; var -= lr * grad / sqrt(accum)", kFloatingOrComplex,
       FLOATING_OR_COMPLEX_TYPES);

template <class C>
struct AdagradV2Rule {
  static RuleSignature Signature() {
    return {.slots = {"accum"},
            .before = {"lr", "epsilon"},
            .flag = "update_slots",
            .flag_default = true};
  }
  static constexpr int kSlots = 1;
  AdagradV2Rule(const C* h, bool update_slots)
      : lr(h[0]), epsilon(h[1]), update_slots(update_slots) {}

  void operator()(C& var, C& accum, C grad) const {
    if (update_slots) accum += grad * grad;
    var -= grad * lr / (std::sqrt(accum) + epsilon);
  }

  C lr, epsilon;
  bool update_slots;
};
UPDATE(AdagradV2, AdagradV2Rule, "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)",
       kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);

template <class C>
struct AdagradDARule {
  static RuleSignature Signature() {
    return {.slots = {"gradient_accumulator", "gradient_squared_accumulator"},
            .after = {"lr", "l1", "l2", "global_step"}};
  }
  static constexpr int kSlots = 2;
  AdagradDARule(const C* h, bool) : lr(h[0]), l1(h[1]), steps(h[3]), l2(h[2] * h[3] * h[0]) {}

  void operator()(C& var, C& sum, C& squares, C grad) const {
    sum += grad;
    squares += grad * grad;
    var = -lr * Shrink(sum, steps, l1) / (l2 + std::sqrt(squares));
  }

  C lr, l1, steps, l2;  // `l2`: the op's l2 * global_step * lr
};
UPDATE(AdagradDA, AdagradDARule,
       "Adagrad with dual averaging: computes var from the sums of the gradients and of "
       "their squares, with L1 and L2 regularization",
       kFloating, FLOATING_TYPES);

template <class C>
struct AdadeltaRule {
  static RuleSignature Signature() {
    return {.slots = {"accum", "accum_update"}, .before = {"lr", "rho", "epsilon"}};
  }
  static constexpr int kSlots = 2;
  AdadeltaRule(const C* h, bool) : lr(h[0]), rho(h[1]), epsilon(h[2]) {}

  void operator()(C& var, C& accum, C& accum_update, C grad) const {
    accum = accum * rho + grad * grad * (C(1) - rho);
    const C update = std::sqrt(accum_update + epsilon) / std::sqrt(accum + epsilon) * grad;
    var -= update * lr;
    accum_update = accum_update * rho + update * update * (C(1) - rho);
  }

  C lr, rho, epsilon;
};
UPDATE(Adadelta, AdadeltaRule,
       "accum = rho * accum + (1 - rho) * grad^2; "
       "update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad; "
       "accum_update = rho * accum_update + (1 - rho) * update^2; var -= lr * update",
       kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
