// SPDX-License-Identifier: Apache-2.0
//
// The update rules that change rows of dynamic tables (kernels/dynamic_table) as well as variables,
// and the loop that runs a rule. update_op.h says what a rule is.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "kernels/training/sign.h"

namespace penstock {

// The inputs of the ops of a rule: variable, slots, hyperparameters, gradient (and indices), more
// hyperparameters.
struct RuleSignature {
  std::vector<const char*> slots = {};   // further state, each with the variable's shape
  std::vector<const char*> before = {};  // hyperparameters before the gradient
  const char* gradient = "grad";
  std::vector<const char*> after = {};  // hyperparameters after it; "global_step" is an int64
  const char* flag = nullptr;  // name of a boolean attribute of the ops; null if there is none
  bool flag_default = false;
};

// Applies the rule to elements [0, n). state[0] is the variable, followed by its slots. REQUIRES:
// the arrays do not overlap.
template <class Rule, class C, class T, size_t... kSlot>
void ApplyRule(const Rule& rule, const std::array<T*, sizeof...(kSlot) + 1>& state, const T* grad,
               int64_t n, std::index_sequence<kSlot...>) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C var = static_cast<C>(state[0][i]);
    C slots[sizeof...(kSlot) + 1] = {static_cast<C>(state[kSlot + 1][i])...};
    rule(var, slots[kSlot]..., static_cast<C>(grad[i]));
    state[0][i] = static_cast<T>(var);
    ((state[kSlot + 1][i] = static_cast<T>(slots[kSlot])), ...);
  }
}

template <class C>
struct GradientDescentRule {
  static RuleSignature Signature() { return {.before = {"alpha"}, .gradient = "delta"}; }
  static constexpr int kSlots = 0;
  GradientDescentRule(const C* h, bool) : alpha(h[0]) {}

  void operator()(C& var, C delta) const { var -= alpha * delta; }

  C alpha;
};

template <class C>
struct AdagradRule {
  static RuleSignature Signature() {
    return {.slots = {"accum"}, .before = {"lr"}, .flag = "update_slots", .flag_default = true};
  }
  static constexpr int kSlots = 1;
  AdagradRule(const C* h, bool update_slots) : lr(h[0]), update_slots(update_slots) {}

  void operator()(C& var, C& accum, C grad) const {
    if (update_slots) accum += grad * grad;
    var -= grad * lr / std::sqrt(accum);
  }

  C lr;
  bool update_slots;
};

template <class C>
struct AdamRule {
  static RuleSignature Signature() {
    return {.slots = {"m", "v"},
            .before = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
            .flag = "use_nesterov"};
  }
  static constexpr int kSlots = 2;
  AdamRule(const C* h, bool use_nesterov)
      : step(h[2] * std::sqrt(C(1) - h[1]) / (C(1) - h[0])),
        beta1(h[3]),
        beta2(h[4]),
        epsilon(h[5]),
        nesterov(use_nesterov) {}

  void operator()(C& var, C& m, C& v, C grad) const {
    m += (grad - m) * (C(1) - beta1);
    v += (grad * grad - v) * (C(1) - beta2);
    const C direction = nesterov ? grad * (C(1) - beta1) + beta1 * m : m;
    var -= direction * step / (std::sqrt(v) + epsilon);
  }

  C step, beta1, beta2, epsilon;
  bool nesterov;
};

// h: lr, l1, l2, l2_shrinkage, lr_power.
template <class C>
struct FtrlBase {
  static constexpr int kSlots = 2;
  FtrlBase(C lr, C l1, C l2, C l2_shrinkage, C lr_power, bool multiply_linear_by_lr)
      : shrinkage(C(2) * l2_shrinkage),
        power(-lr_power),
        root(lr_power == C(-0.5)),
        // With the flag, the slot linear holds lr times the value that it holds without the flag.
        linear_rate(multiply_linear_by_lr ? lr : C(1)),
        accum_rate(multiply_linear_by_lr ? C(1) : C(1) / lr),
        l1(l1 * linear_rate),
        l2(C(2) * l2 * linear_rate) {}

  static Status CheckRates(C lr, C l1, C l2, C l2_shrinkage, C lr_power,
                           bool multiply_linear_by_lr) {
    // lr may be zero only with the flag, because without the flag lr is a divisor.
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

}  // namespace penstock
