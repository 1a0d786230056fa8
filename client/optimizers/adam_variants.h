// SPDX-License-Identifier: Apache-2.0
//
// Variants of Adam that use its moments m and v and its rate (formulas in client/optimizers.h).
#pragma once

#include <functional>
#include <string>

#include "client/optimizers.h"

namespace penstock::client {

// Adam for large embedding tables: rows without a gradient, and their moments, do not change. The
// cost of a step depends on the number of rows in its gradient, not on the size of the table.
class LazyAdam : public Adam {
 public:
  explicit LazyAdam(Hyperparameter learning_rate, const Options& options = {});

 protected:
  using Adam::Adam;
  Output ApplySparse(const Variable& variable, const Gradient& gradient) override;
};

struct DecayOptions {
  double weight_decay = 0.01;
  // Returns whether a variable decays; null: all variables decay. Biases and scales usually should
  // not.
  std::function<bool(const Variable&)> decays = nullptr;
};

// Applies w -= rate * weight_decay * w (only to the rows of a sparse gradient), then LazyAdam.
// Unlike L2 regularisation, the decay does not enter the moments.
class AdamW : public LazyAdam {
 public:
  explicit AdamW(Hyperparameter learning_rate, const DecayOptions& decay = {},
                 const Options& options = {.epsilon = 1e-7});

 protected:
  Output ApplyDense(const Variable& variable, Output gradient) override;
  Output ApplySparse(const Variable& variable, const Gradient& gradient) override;

 private:
  bool Decays(const Variable& variable) const;
  const DecayOptions decay_;
};

// LAMB, for large batches: the norm of each variable's update is proportional to the norm of the
// variable.
//   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * w
//   w -= rate * |w| / |u| * u                (rate * u if |w| or |u| is 0)
// In a partitioned variable each part uses its own norms. Sparse gradients change all rows.
class Lamb : public Adam {
 public:
  explicit Lamb(Hyperparameter learning_rate, const DecayOptions& decay = {},
                const Options& options = {.epsilon = 1e-6});

 protected:
  Output ApplyDense(const Variable& variable, Output gradient) override;
  Output ApplySparse(const Variable& variable, const Gradient& gradient) override;

 private:
  Output Step(const Variable& variable, const Outputs& moments);
  const DecayOptions decay_;
};

}  // namespace penstock::client
