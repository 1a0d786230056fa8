// SPDX-License-Identifier: Apache-2.0
//
// AccumulateGradients: several mini-batches make one update, that of one big batch, in the memory
// of a small one:
//
//   const Accumulation sum = AccumulateGradients(program, gradients, 4);
//   const Output train = optimizer.ApplyGradients(program, sum.gradients, program.GlobalStep());
//   // for each update: run sum.accumulate four times (in any number of steps at once), train once
//
// Gradients are added in the order in which they come, beside the variables; `train` waits until
// there are enough. Steps one after the other make the same sums, bit for bit, in every run.
#pragma once

#include <vector>

#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

struct Accumulation {
  Output accumulate;                        // an op: adds the gradients of one mini-batch
  std::vector<VariableGradient> gradients;  // the means of `count` mini-batches
};

// Variables without a gradient are passed over. A row of a sparse gradient is divided by `count`
// too, so that both kinds are means over the whole batch.
Accumulation AccumulateGradients(Program& program, const std::vector<VariableGradient>& gradients,
                                 int32_t count);

}  // namespace penstock::client
