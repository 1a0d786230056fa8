// SPDX-License-Identifier: Apache-2.0
//
// AddSign and PowerSign: take larger steps if the gradient and its running mean have the same sign.
#include <cmath>

#include "kernels/training/sign.h"
#include "kernels/training/update_op.h"

namespace penstock {

template <class C>
struct AddSignRule {
  static RuleSignature Signature() {
    return {.slots = {"m"}, .before = {"lr", "alpha", "sign_decay", "beta"}};
  }
  static constexpr int kSlots = 1;
  AddSignRule(const C* h, bool) : lr(h[0]), alpha(h[1]), sign_decay(h[2]), beta(h[3]) {}

  void operator()(C& var, C& m, C grad) const {
    m = m * beta + grad * (C(1) - beta);
    var -= lr * (alpha + sign_decay * Sign(grad) * Sign(m)) * grad;
  }

  C lr, alpha, sign_decay, beta;
};
DENSE_UPDATE(AddSign, AddSignRule,
             "m = beta * m + (1 - beta) * grad; "
             "var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad",
             kFloating, FLOATING_TYPES);

template <class C>
struct PowerSignRule {
  static RuleSignature Signature() {
    return {.slots = {"m"}, .before = {"lr", "logbase", "sign_decay", "beta"}};
  }
  static constexpr int kSlots = 1;
  // The product of two signs is -1, 0 or 1, so there are only three powers to compute.
  PowerSignRule(const C* h, bool)
      : lr(h[0]), agree(std::exp(h[1] * h[2])), differ(std::exp(-h[1] * h[2])), beta(h[3]) {}

  void operator()(C& var, C& m, C grad) const {
    m = m * beta + grad * (C(1) - beta);
    const C signs = Sign(grad) * Sign(m);
    var -= lr * (signs > C(0) ? agree : signs < C(0) ? differ : C(1)) * grad;
  }

  C lr, agree, differ, beta;
};
DENSE_UPDATE(PowerSign, PowerSignRule,
             "m = beta * m + (1 - beta) * grad; "
             "var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad",
             kFloating, FLOATING_TYPES);

}  // namespace penstock
