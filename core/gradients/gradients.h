// SPDX-License-Identifier: Apache-2.0
//
// Gradients by graph extension (TensorFlow's white paper, section 4.1): AddGradients adds the nodes
// that compute d(sum of ys) / d(xs). It walks backwards from ys and sums over paths. It can also
// differentiate nodes that it has added: two calls give second-order gradients. SumGradients:
// adds up the gradients of one tensor.
#pragma once

#include <vector>

#include "core/graph/builder.h"
#include "core/op/gradient.h"

namespace penstock {

// Returns one Gradient per x: none() if no y depends on the x through differentiable ops. `dys` are
// the gradients of ys; an invalid Output stands for a gradient of ones, and so does an empty `dys`
// for all ys. InvalidArgument if `dys` does not fit `ys`. Unimplemented names a node between xs and
// ys whose op has no gradient function.
StatusOr<std::vector<Gradient>> AddGradients(GraphBuilder& builder, const Outputs& ys,
                                             const Outputs& xs, const Outputs& dys = {});

// Returns the sum of `parts`, none of which is none(). It is sparse if all of them are. REQUIRES:
// `parts` is not empty.
Gradient SumGradients(const std::vector<Gradient>& parts);

}  // namespace penstock
