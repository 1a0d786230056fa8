// SPDX-License-Identifier: Apache-2.0
//
// FTRL-Proximal: follow the regularized leader.
#include <cmath>

#include "kernels/training/sign.h"
#include "kernels/training/update_op.h"

namespace penstock {

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
       "The same as Ftrl, but linear grows by grad + 2 * l2_shrinkage * var instead of "
       "grad",
       kFloating, FLOATING_TYPES);

}  // namespace penstock
