// SPDX-License-Identifier: Apache-2.0
//
// Functions that change gradients: clipping (ClipByGlobalNorm is in client/gradients.h), and
// penalties that are added to the loss.
//
//   const auto gradients = optimizer.ComputeGradients(program, loss + L2Penalty({w}, 1e-4));
//   Output train = optimizer.ApplyGradients(program, ClipByNorm(program, gradients, 5));
#pragma once

#include <vector>

#include "client/gradients.h"
#include "client/ops/located_outputs.h"
#include "client/program.h"

namespace penstock::client {

// Scales each gradient with a Euclidean norm above `norm` to this norm. Repeated rows of a sparse
// gradient are summed first. `norm`, and `limit` below, must be greater than 0.
std::vector<VariableGradient> ClipByNorm(Program& program,
                                         const std::vector<VariableGradient>& gradients,
                                         double norm,
                                         SourceLine line = {__builtin_FILE(), __builtin_LINE()});
// Clips each element to [-limit, limit].
std::vector<VariableGradient> ClipByValue(Program& program,
                                          const std::vector<VariableGradient>& gradients,
                                          double limit,
                                          SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// Return scale * sum(|x|) and scale * sum(x^2) / 2, over all elements of all `tensors`. Pass
// variables, or the rows that a step has looked up in a table (a complete table would get a dense
// gradient). REQUIRES: at least one tensor, all of one type.
Output L1Penalty(const LocatedOutputs& tensors, double scale);
Output L2Penalty(const LocatedOutputs& tensors, double scale);

}  // namespace penstock::client
