// SPDX-License-Identifier: Apache-2.0
//
// Gradients: adds to a graph the nodes that compute d(sum of ys) / d(xs). Calling it on its own
// results gives second derivatives.
//
// A mistake (an op on the way has no gradient, a y is not floating point) is kept as the graph's
// error, as for every other node added.
#pragma once

#include <vector>

#include "client/variable.h"
#include "core/graph/builder.h"
#include "core/op/gradient.h"

namespace penstock::client {

// A variable, and what a loss wants it to change by.
struct VariableGradient {
  Gradient gradient;
  Variable variable;
};

// One per x: dense, sparse (rows of it, as Gather's is), or none if no y depends on it. To
// differentiate by a variable, give its handle().
std::vector<Gradient> Gradients(GraphBuilder& graph, const Outputs& ys, const Outputs& xs,
                                const Outputs& dys = {});

// The gradients with all of their elements together no longer than `norm` (Euclidean); and the
// length that they had.
struct ClippedGradients {
  std::vector<VariableGradient> gradients;
  Output global_norm;
};
ClippedGradients ClipByGlobalNorm(const std::vector<VariableGradient>& gradients, double norm);

}  // namespace penstock::client
