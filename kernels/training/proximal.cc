// SPDX-License-Identifier: Apache-2.0
//
// Proximal update rules: a step of gradient descent, then shrinkage by L1 and L2 regularization.
#include <cmath>

#include "kernels/training/sign.h"
#include "kernels/training/update_op.h"

namespace penstock {

template <class C>
struct ProximalGradientDescentBase {
  static constexpr int kSlots = 0;
  ProximalGradientDescentBase(const C* h, bool) : alpha(h[0]), l1(h[1]), l2(h[2]) {}

  void operator()(C& var, C grad) const {
    var = Shrink(var - alpha * grad, alpha, l1) / (C(1) + alpha * l2);
  }

  C alpha, l1, l2;
};
// The gradient argument has different names in the dense and the sparse ops.
template <class C>
struct ProximalGradientDescentRule : ProximalGradientDescentBase<C> {
  using ProximalGradientDescentBase<C>::ProximalGradientDescentBase;
  static RuleSignature Signature() {
    return {.before = {"alpha", "l1", "l2"}, .gradient = "delta"};
  }
};
template <class C>
struct SparseProximalGradientDescentRule : ProximalGradientDescentBase<C> {
  using ProximalGradientDescentBase<C>::ProximalGradientDescentBase;
  static RuleSignature Signature() { return {.before = {"alpha", "l1", "l2"}}; }
};
constexpr char kProximalGradientDescentDoc[] =
    "prox = var - alpha * delta; var = sign(prox) * max(|prox| - alpha * l1, 0) / (1 + alpha * l2)";
DENSE_UPDATE(ProximalGradientDescent, ProximalGradientDescentRule, kProximalGradientDescentDoc,
             kFloating, FLOATING_TYPES);
SPARSE_UPDATE(ProximalGradientDescent, SparseProximalGradientDescentRule,
              kProximalGradientDescentDoc, kFloating, FLOATING_TYPES);

template <class C>
struct ProximalAdagradRule {
  static RuleSignature Signature() { return {.slots = {"accum"}, .before = {"lr", "l1", "l2"}}; }
  static constexpr int kSlots = 1;
  static Status Check(const C* h, bool) {
    if (!(h[0] > C(0))) return InvalidArgument("lr is not a positive scalar: ", h[0]);
    if (!(h[1] >= C(0))) return InvalidArgument("l1 is not a non-negative scalar: ", h[1]);
    if (!(h[2] >= C(0))) return InvalidArgument("l2 is not a non-negative scalar: ", h[2]);
    return OkStatus();
  }
  ProximalAdagradRule(const C* h, bool) : lr(h[0]), l1(h[1]), l2(h[2]) {}

  void operator()(C& var, C& accum, C grad) const {
    accum += grad * grad;
    const C rate = lr / std::sqrt(accum);
    var = Shrink(var - rate * grad, rate, l1) / (C(1) + rate * l2);
  }

  C lr, l1, l2;
};
UPDATE(ProximalAdagrad, ProximalAdagradRule,
       "accum += grad^2; rate = lr / sqrt(accum); prox = var - rate * grad; "
       "var = sign(prox) * max(|prox| - rate * l1, 0) / (1 + rate * l2)",
       kFloating, FLOATING_TYPES);

}  // namespace penstock
