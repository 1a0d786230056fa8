// SPDX-License-Identifier: Apache-2.0
//
// FTRL-Proximal: follow the regularized leader.
#include <cmath>

#include "kernels/training/sign.h"
#include "kernels/training/update_op.h"

namespace penstock {

// h: lr, l1, l2, l2_shrinkage, lr_power.
template <class C>
struct FtrlBase {
  static constexpr int kSlots = 2;
  FtrlBase(C lr, C l1, C l2, C l2_shrinkage, C lr_power, bool multiply_linear_by_lr)
      : shrinkage(C(2) * l2_shrinkage),
        power(-lr_power),
        root(lr_power == C(-0.5)),
        // With the flag, linear holds lr times what it holds without.
        linear_rate(multiply_linear_by_lr ? lr : C(1)),
        accum_rate(multiply_linear_by_lr ? C(1) : C(1) / lr),
        l1(l1 * linear_rate),
        l2(C(2) * l2 * linear_rate) {}

  static Status CheckRates(C lr, C l1, C l2, C l2_shrinkage, C lr_power,
                           bool multiply_linear_by_lr) {
    // Only without the flag is lr a divisor.
    if (!(lr > C(0)) && !(multiply_linear_by_lr && lr == C(0))) {
      return InvalidArgument("lr is not a positive scalar: ", lr);
    }
    if (!(l1 >= C(0))) return InvalidArgument("l1 is not a non-negative scalar: ", l1);
    if (!(l2 >= C(0))) return InvalidArgument("l2 is not a non-negative scalar: ", l2);
    if (!(l2_shrinkage >= C(0))) {
      return InvalidArgument("l2_shrinkage is not a non-negative scalar: ", l2_shrinkage);
    }
    if (!(lr_power <= C(0))) {
      return InvalidArgument("lr_power is not a non-positive scalar: ", lr_power);
    }
    return OkStatus();
  }

  C Power(C x) const { return root ? std::sqrt(x) : std::pow(x, power); }

  void operator()(C& var, C& accum, C& linear, C grad) const {
    const C new_accum = accum + grad * grad;
    const C new_power = Power(new_accum);
    linear +=
        (grad + shrinkage * var) * linear_rate - (new_power - Power(accum)) * accum_rate * var;
    accum = new_accum;
    const C quadratic = new_power * accum_rate + l2;
    var = std::abs(linear) > l1 ? (Sign(linear) * l1 - linear) / quadratic : C(0);
  }

  C shrinkage, power;
  bool root;
  C linear_rate, accum_rate, l1, l2;
};

template <class C>
struct FtrlRule : FtrlBase<C> {
  static RuleSignature Signature() {
    return {.slots = {"accum", "linear"},
            .after = {"lr", "l1", "l2", "lr_power"},
            .flag = "multiply_linear_by_lr"};
  }
  static Status CheckSparse(const C* h, bool flag) {
    return FtrlBase<C>::CheckRates(h[0], h[1], h[2], C(0), h[3], flag);
  }
  FtrlRule(const C* h, bool flag) : FtrlBase<C>(h[0], h[1], h[2], C(0), h[3], flag) {}
};
UPDATE(Ftrl, FtrlRule,
       "new = accum + grad^2; linear += grad - (new^-lr_power - accum^-lr_power) / lr * var; "
       "var = |linear| > l1 ? (sign(linear) * l1 - linear) / (new^-lr_power / lr + 2 * l2) : 0",
       kFloating, FLOATING_TYPES);

template <class C>
struct FtrlV2Rule : FtrlBase<C> {
  static RuleSignature Signature() {
    return {.slots = {"accum", "linear"},
            .after = {"lr", "l1", "l2", "l2_shrinkage", "lr_power"},
            .flag = "multiply_linear_by_lr"};
  }
  static Status CheckSparse(const C* h, bool flag) {
    return FtrlBase<C>::CheckRates(h[0], h[1], h[2], h[3], h[4], flag);
  }
  FtrlV2Rule(const C* h, bool flag) : FtrlBase<C>(h[0], h[1], h[2], h[3], h[4], flag) {}
};
UPDATE(FtrlV2, FtrlV2Rule,
       "As Ftrl, but linear grows by grad + 2 * l2_shrinkage * var in the place of grad", kFloating,
       FLOATING_TYPES);

}  // namespace penstock
