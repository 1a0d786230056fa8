// SPDX-License-Identifier: Apache-2.0
//
// The RMSProp update rules, plain and centered.
#include <cmath>

#include "kernels/training/update_op.h"

namespace penstock {

template <class C>
struct RMSPropRule {
  static RuleSignature Signature() {
    return {.slots = {"ms", "mom"}, .before = {"lr", "rho", "momentum", "epsilon"}};
  }
  static constexpr int kSlots = 2;
  RMSPropRule(const C* h, bool) : lr(h[0]), rho(h[1]), momentum(h[2]), epsilon(h[3]) {}

  void operator()(C& var, C& ms, C& mom, C grad) const {
    ms += (grad * grad - ms) * (C(1) - rho);
    mom = mom * momentum + grad * lr / std::sqrt(ms + epsilon);
    var -= mom;
  }

  C lr, rho, momentum, epsilon;
};
UPDATE(RMSProp, RMSPropRule,
       "ms = rho * ms + (1 - rho) * grad^2; "
       "mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom",
       kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);

template <class C>
struct CenteredRMSPropRule {
  static RuleSignature Signature() {
    return {.slots = {"mg", "ms", "mom"}, .before = {"lr", "rho", "momentum", "epsilon"}};
  }
  static constexpr int kSlots = 3;
  CenteredRMSPropRule(const C* h, bool) : lr(h[0]), rho(h[1]), momentum(h[2]), epsilon(h[3]) {}

  void operator()(C& var, C& mg, C& ms, C& mom, C grad) const {
    ms += (grad * grad - ms) * (C(1) - rho);
    mg += (grad - mg) * (C(1) - rho);
    mom = mom * momentum + grad * lr / std::sqrt(ms - mg * mg + epsilon);
    var -= mom;
  }

  C lr, rho, momentum, epsilon;
};
UPDATE(CenteredRMSProp, CenteredRMSPropRule,
       "mg = rho * mg + (1 - rho) * grad; ms = rho * ms + (1 - rho) * grad^2; "
       "mom = momentum * mom + lr * grad / sqrt(ms - mg^2 + epsilon); var -= mom",
       kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);

}  // namespace penstock
