// SPDX-License-Identifier: Apache-2.0
//
// Adam and its variants: AdaMax, AMSGrad.
#include <cmath>

#include "kernels/training/update_op.h"

namespace penstock {

// TensorFlow has no sparse form of this op. In the sparse form here, rows without a gradient keep
// their moments (lazy Adam).
UPDATE(Adam, AdamRule,
       "lr_t = lr * sqrt(1 - beta2^t) / (1 - beta1^t); m = beta1 * m + (1 - beta1) * grad; "
       "v = beta2 * v + (1 - beta2) * grad^2; var -= lr_t * m / (sqrt(v) + epsilon)",
       kFloatingOrComplex, FLOATING_OR_COMPLEX_TYPES);

template <class C>
struct AdamWithAmsgradRule {
  static RuleSignature Signature() {
    return {.slots = {"m", "v", "vhat"},
            .before = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"}};
  }
  static constexpr int kSlots = 3;
  AdamWithAmsgradRule(const C* h, bool)
      : step(h[2] * std::sqrt(C(1) - h[1]) / (C(1) - h[0])),
        beta1(h[3]),
        beta2(h[4]),
        epsilon(h[5]) {}

  void operator()(C& var, C& m, C& v, C& vhat, C grad) const {
    m += (grad - m) * (C(1) - beta1);
    v += (grad * grad - v) * (C(1) - beta2);
    vhat = v > vhat ? v : vhat;
    var -= m * step / (std::sqrt(vhat) + epsilon);
  }

  C step, beta1, beta2, epsilon;
};
PENSTOCK_UPDATE_OP(ResourceApplyAdamWithAmsgrad, AdamWithAmsgrad, AdamWithAmsgradRule,
                   "The same as Adam, with vhat = max(vhat, v) instead of v", kResourceApply,
                   kFloating, FLOATING_TYPES);

template <class C>
struct AdaMaxRule {
  static RuleSignature Signature() {
    return {.slots = {"m", "v"}, .before = {"beta1_power", "lr", "beta1", "beta2", "epsilon"}};
  }
  static constexpr int kSlots = 2;
  AdaMaxRule(const C* h, bool)
      : step(h[1] / (C(1) - h[0])), beta1(h[2]), beta2(h[3]), epsilon(h[4]) {}

  void operator()(C& var, C& m, C& v, C grad) const {
    m += (grad - m) * (C(1) - beta1);
    const C decayed = beta2 * v, size = std::abs(grad);
    v = decayed > size ? decayed : size;
    var -= step * m / (v + epsilon);
  }

  C step, beta1, beta2, epsilon;
};
DENSE_UPDATE(AdaMax, AdaMaxRule,
             "m = beta1 * m + (1 - beta1) * grad; v = max(beta2 * v, |grad|); "
             "var -= lr / (1 - beta1^t) * m / (v + epsilon)",
             kFloating, FLOATING_TYPES);

}  // namespace penstock
