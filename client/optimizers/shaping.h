// SPDX-License-Identifier: Apache-2.0
//
// Functions that shape gradients: clipping (ClipByGlobalNorm is in client/gradients.h), and
// penalties that are added to the loss.
//
//   const auto gradients = optimizer.ComputeGradients(program, loss + L2Penalty({w}, 1e-4));
//   Output train = optimizer.ApplyGradients(program, ClipByNorm(program, gradients, 5));
#pragma once

#include <vector>

#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

// Each gradient scaled to a length (Euclidean) of `norm` if it is longer. Rows of a sparse gradient
// that repeat are summed first. `norm` and `limit` must be greater than 0.
std::vector<VariableGradient> ClipByNorm(Program& program,
                                         const std::vector<VariableGradient>& gradients,
                                         double norm);
// Each element brought into [-limit, limit].
std::vector<VariableGradient> ClipByValue(Program& program,
                                          const std::vector<VariableGradient>& gradients,
                                          double limit);

// scale * sum(|x|), and scale * sum(x^2) / 2, over all elements of all `tensors`: variables, or the
// rows of tables that a step has looked up (a table as a whole would have a dense gradient).
// REQUIRES at least one tensor, all of one type.
Output L1Penalty(const Outputs& tensors, double scale);
Output L2Penalty(const Outputs& tensors, double scale);

}  // namespace penstock::client
