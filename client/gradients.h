// SPDX-License-Identifier: Apache-2.0
//
// Gradients: adds to a graph the nodes that compute d(sum of ys) / d(xs). Calling it on its own
// results gives second derivatives. ClipByGlobalNorm: limits the joint norm of gradients.
//
// If an op between ys and xs has no gradient, or a y is not floating point, Gradients sets the
// graph's error. Errors of a gradient's nodes name the line of the op that was differentiated; if
// this op has no line, and for all other nodes, errors name the line of the call.
#pragma once

#include <vector>

#include "client/variable.h"
#include "core/graph/builder.h"
#include "core/op/gradient.h"

namespace penstock::client {

// A variable and the gradient of a loss with respect to it.
struct VariableGradient {
  Gradient gradient;
  Variable variable;
};

// Returns one gradient per x: dense; sparse (for some rows, such as Gather's gradient); or none if
// no y depends on the x. To differentiate by a variable, pass its handle(). `dys` are the gradients
// with respect to the ys; if it is empty, they are ones.
std::vector<Gradient> Gradients(GraphBuilder& graph, const Outputs& ys, const Outputs& xs,
                                const Outputs& dys = {},
                                SourceLine line = {__builtin_FILE(), __builtin_LINE()});

// The gradients, scaled so that their joint Euclidean norm is at most `norm`; and their joint norm
// before scaling.
struct ClippedGradients {
  std::vector<VariableGradient> gradients;
  Output global_norm;
};
ClippedGradients ClipByGlobalNorm(const std::vector<VariableGradient>& gradients, double norm,
                                  SourceLine line = {__builtin_FILE(), __builtin_LINE()});

}  // namespace penstock::client
