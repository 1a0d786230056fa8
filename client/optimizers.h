// SPDX-License-Identifier: Apache-2.0
//
// Optimisation methods. Their formulas, slot names and defaults are TensorFlow's. All of them
// accept dense gradients, and sparse ones, which have values for some rows only.
#pragma once

#include <optional>
#include <string>

#include "client/optimizer.h"

namespace penstock::client {

// w -= rate * g
class GradientDescent : public Optimizer {
 public:
  explicit GradientDescent(Hyperparameter learning_rate);

 protected:
  Output ApplySparse(const Variable& variable, const Gradient& gradient) override;
};

// a = momentum * a + g;  w -= rate * a       (nesterov: w -= rate * (g + momentum * a))
class Momentum : public Optimizer {
 public:
  Momentum(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov = false);
};

// a += g^2;  w -= rate * g / sqrt(a)
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(Hyperparameter learning_rate, double initial_accumulator = 0.1);
};

struct RmsPropOptions {
  Hyperparameter decay = 0.9, momentum = 0.0, epsilon = 1e-10;
};
// s = decay * s + (1 - decay) * g^2;  m = momentum * m + rate * g / sqrt(s + epsilon);  w -= m
class RmsProp : public Optimizer {
 public:
  using Options = RmsPropOptions;
  explicit RmsProp(Hyperparameter learning_rate, const Options& options = {});
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999;
  Hyperparameter epsilon = 1e-8;
  bool use_nesterov = false;  // dense gradients only
};
// m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
// w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon).
// For rows that are not in a sparse gradient, g is 0: their m and v decay as well.
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;
  explicit Adam(Hyperparameter learning_rate, const Options& options = {});

 protected:
  // For derived methods with the same state. The slots are called `name` and `name`_1.
  Adam(const std::string& name, Hyperparameter learning_rate, const Options& options);
  Output ApplySparse(const Variable& variable, const Gradient& gradient) override;
  void Prepare(Program& program, const Variable& first) override;
  Outputs Finish(Program& program, const Outputs& updates) override;
  // Adds the ops that update all rows of m and v, with 0 for the rows that `gradient` does not
  // have.
  Outputs UpdateMoments(const Variable& variable, const Gradient& gradient);
  const Options& options() const { return options_; }

 private:
  const Hyperparameter learning_rate_;
  const Options options_;
  std::optional<Variable> beta1_power_, beta2_power_;
};

}  // namespace penstock::client
