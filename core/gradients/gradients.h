// SPDX-License-Identifier: Apache-2.0
//
// Gradients by graph extension (white paper, section 4.1): adds the nodes that compute
// d(sum of ys) / d(xs), walking backwards from ys and summing over paths. Works on its own
// results, so second order is calling it twice.
#pragma once

#include <vector>

#include "core/graph/builder.h"
#include "core/op/gradient.h"

namespace penstock {

// One Gradient per x; none() where no y depends on it through differentiable ops. `dys` are the
// gradients of ys (ones where left out). Errors: an op on the way without a gradient function is
// Unimplemented and names the node.
StatusOr<std::vector<Gradient>> AddGradients(GraphBuilder& builder, const Outputs& ys,
                                             const Outputs& xs, const Outputs& dys = {});

// All of `parts`, none of which is none(), added up: sparse where all are. REQUIRES at least one.
Gradient SumGradients(const std::vector<Gradient>& parts);

}  // namespace penstock
