// SPDX-License-Identifier: Apache-2.0
//
// Methods made of Adam's moments (client/optimizers.h has the formulas of m, v and the rate).
#pragma once

#include <functional>
#include <string>

#include "client/optimizers.h"

namespace penstock::client {

// Adam that leaves rows without a gradient alone, moments included: what large embedding tables
// need. A step costs what its rows cost, not what the table does.
class LazyAdam : public Adam {
 public:
  explicit LazyAdam(Hyperparameter learning_rate, const Options& options = {});

 protected:
  using Adam::Adam;
  Output ApplySparse(const Variable& variable, const Gradient& gradient) override;
};

struct DecayOptions {
  double weight_decay = 0.01;
  // Whether a variable decays; null: all of them do. Biases and scales usually should not.
  std::function<bool(const Variable&)> decays = nullptr;
};

// LazyAdam after w -= rate * weight_decay * w (of a sparse gradient's rows only): the decay does
// not pass through the moments, as L2 regularisation would.
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

// For large batches: the length of each variable's step is in proportion to the variable's.
//   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * w
//   w -= rate * |w| / |u| * u                (rate * u if |w| or |u| is 0)
// The length is that of a part if a variable is partitioned. Sparse gradients change all rows.
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
