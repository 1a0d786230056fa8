// SPDX-License-Identifier: Apache-2.0
//
// Gradients by graph extension (white paper, section 4.1): adds the nodes that compute
// d(sum of ys) / d(xs), walking backwards from ys and summing over paths. It also differentiates
// nodes that it has added: calling it twice gives second-order gradients.
#pragma once

#include <vector>

#include "core/graph/builder.h"
#include "core/op/gradient.h"

namespace penstock {

// Returns one Gradient per x: none() if no y depends on the x through differentiable ops. `dys` are
// the gradients of ys; ones are used for an invalid Output, or for all if `dys` is empty.
// InvalidArgument if the arguments do not fit. Unimplemented names a node on the way whose op has
// no gradient function.
StatusOr<std::vector<Gradient>> AddGradients(GraphBuilder& builder, const Outputs& ys,
                                             const Outputs& xs, const Outputs& dys = {});

// Returns the sum of `parts`, none of which is none(). It is sparse if all of them are. REQUIRES:
// `parts` is not empty.
Gradient SumGradients(const std::vector<Gradient>& parts);

}  // namespace penstock
