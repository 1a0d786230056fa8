// SPDX-License-Identifier: Apache-2.0
//
// Learning rates that change with the global step. Each is a scalar that stands beside the global
// step and is computed anew in each step; an optimizer takes it as its rate:
//
//   Adagrad optimizer(WarmUp(program, 1000, ExponentialDecay(program, {.initial = 0.1, ...})));
//
// The formulas are TensorFlow's, with the step of the moment, before the optimizer raises it.
// Bad options become the program's error.
#pragma once

#include <vector>

#include "client/program.h"

namespace penstock::client {

struct ExponentialDecayOptions {
  double initial = 0;
  double steps = 1;  // after which `rate` has been applied once
  double rate = 1;
  bool staircase = false;  // changes only at whole multiples of `steps`
};
// initial * rate^(step / steps)
Output ExponentialDecay(Program& program, const ExponentialDecayOptions& options);

struct CosineDecayOptions {
  double initial = 0;
  double steps = 1;  // from here on the rate stays as it is
  double final = 0;  // the share of `initial` that is left
};
// initial * ((1 - final) * (1 + cos(pi * min(step, steps) / steps)) / 2 + final)
Output CosineDecay(Program& program, const CosineDecayOptions& options);

struct PolynomialDecayOptions {
  double initial = 0;
  double end = 0.0001;  // the rate from `steps` on
  double steps = 1;
  double power = 1;
};
// (initial - end) * (1 - min(step, steps) / steps)^power + end
Output PolynomialDecay(Program& program, const PolynomialDecayOptions& options);

// values[0] up to and with step boundaries[0], and so on; values.back() after the last boundary.
// REQUIRES ascending boundaries and a value more than there are of them.
Output PiecewiseConstant(Program& program, const std::vector<int64_t>& boundaries,
                         const std::vector<double>& values);

// rate * min(1, (step + 1) / steps): rises in equal steps from rate / steps.
Output WarmUp(Program& program, double steps, Output rate);
Output WarmUp(Program& program, double steps, double rate);

}  // namespace penstock::client
