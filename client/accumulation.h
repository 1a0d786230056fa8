// SPDX-License-Identifier: Apache-2.0
//
// AccumulateGradients: sums the gradients of several mini-batches and applies them as one update.
// The update is that of one big batch, but a step needs only the memory of a small one:
//
//   const Accumulation sum = AccumulateGradients(program, gradients, 4);
//   const Output train = optimizer.ApplyGradients(program, sum.gradients, program.GlobalStep());
//   // for each update: run sum.accumulate four times (one by one or concurrently), train once
//
// Gradients are added in the order of their arrival, on the devices of the variables; `train` waits
// until four mini-batches have been added. If the steps run one at a time, the sums are the same,
// bit for bit, in every run.
#pragma once

#include <vector>

#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

struct Accumulation {
  Output accumulate;                        // an op: adds the gradients of one mini-batch
  std::vector<VariableGradient> gradients;  // the means of `count` mini-batches
};

// Adds the nodes that sum `count` (>= 1) mini-batches. A variable without a gradient stays without
// one. Each row of a sparse gradient is divided by `count` too, so dense and sparse gradients are
// both means over the big batch. An invalid argument sets the program's error.
Accumulation AccumulateGradients(Program& program, const std::vector<VariableGradient>& gradients,
                                 int32_t count,
                                 SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client
