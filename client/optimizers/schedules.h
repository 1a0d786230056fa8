// SPDX-License-Identifier: Apache-2.0
//
// Learning rates that change with the global step. Each is a scalar on the device of the global
// step, computed in each step; pass it to an optimizer as its rate:
//
//   Adagrad optimizer(WarmUp(program, 1000, ExponentialDecay(program, {.initial = 0.1, ...})));
//
// The formulas are TensorFlow's; `step` is the global step before the optimizer raises it. Invalid
// options set the program's error. This error, and errors of the nodes, name the line of the call.
#pragma once

#include <vector>

#include "client/program.h"

namespace penstock::client {

struct ExponentialDecayOptions {
  double initial = 0;
  double steps = 1;  // the number of steps in which the result is multiplied once by `rate`
  double rate = 1;
  bool staircase = false;  // if true, the rate changes only at multiples of `steps`
};
// Returns initial * rate^(step / steps).
Output ExponentialDecay(Program& program, const ExponentialDecayOptions& options,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct CosineDecayOptions {
  double initial = 0;
  double steps = 1;  // the number of steps after which the rate is constant
  double final = 0;  // the final rate as a fraction of `initial`
};
// Returns initial * ((1 - final) * (1 + cos(pi * min(step, steps) / steps)) / 2 + final).
Output CosineDecay(Program& program, const CosineDecayOptions& options,
                   SourceLine line = {__builtin_FILE(), __builtin_LINE()});

struct PolynomialDecayOptions {
  double initial = 0;
  double end = 0.0001;  // the rate from `steps` on
  double steps = 1;
  double power = 1;
};
// Returns (initial - end) * (1 - min(step, steps) / steps)^power + end.
Output PolynomialDecay(Program& program, const PolynomialDecayOptions& options,
                       SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// Returns values[0] for step <= boundaries[0], and so on; values.back() after the last boundary.
// REQUIRES: ascending boundaries, and one value more than boundaries.
Output PiecewiseConstant(Program& program, const std::vector<int64_t>& boundaries,
                         const std::vector<double>& values,
                         SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// Returns rate * min(1, (step + 1) / steps), which rises linearly from rate / steps to rate.
Output WarmUp(Program& program, double steps, Output rate,
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});
Output WarmUp(Program& program, double steps, double rate,
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client
