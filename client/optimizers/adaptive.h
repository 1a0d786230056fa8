// SPDX-License-Identifier: Apache-2.0
//
// More methods with a separate learning rate for each element (others are in client/optimizers.h).
// Their formulas, slot names and defaults are TensorFlow's. Rows without a gradient do not change.
#pragma once

#include "client/optimizer.h"

namespace penstock::client {

struct FtrlOptions {
  Hyperparameter learning_rate_power = -0.5;  // <= 0
  double initial_accumulator = 0.1;
  Hyperparameter l1 = 0.0, l2 = 0.0;
  // 2 * l2_shrinkage * w is added to the gradient; unlike l1 it makes no element exactly 0
  Hyperparameter l2_shrinkage = 0.0;
};
// Follow the regularised leader, for wide, sparse, linear models. l1 makes elements exactly 0.
//   n = a + g^2;  z += g + 2 * l2_shrinkage * w - (n^-power - a^-power) / rate * w;  a = n
//   w = |z| > l1 ? (sign(z) * l1 - z) / (n^-power / rate + 2 * l2) : 0
class Ftrl : public Optimizer {
 public:
  using Options = FtrlOptions;
  explicit Ftrl(Hyperparameter learning_rate, const Options& options = {});
};

struct AdadeltaOptions {
  Hyperparameter rho = 0.95, epsilon = 1e-8;
};
// a = rho * a + (1 - rho) * g^2;  d = sqrt(u + epsilon) / sqrt(a + epsilon) * g;
// u = rho * u + (1 - rho) * d^2;  w -= rate * d
class Adadelta : public Optimizer {
 public:
  using Options = AdadeltaOptions;
  explicit Adadelta(Hyperparameter learning_rate = 0.001, const Options& options = {});
};

struct CenteredRmsPropOptions {
  Hyperparameter decay = 0.9, momentum = 0.0, epsilon = 1e-10;
};
// c = decay * c + (1 - decay) * g;  s = decay * s + (1 - decay) * g^2;
// m = momentum * m + rate * g / sqrt(s - c^2 + epsilon);  w -= m
class CenteredRmsProp : public Optimizer {
 public:
  using Options = CenteredRmsPropOptions;
  explicit CenteredRmsProp(Hyperparameter learning_rate, const Options& options = {});
};

}  // namespace penstock::client
