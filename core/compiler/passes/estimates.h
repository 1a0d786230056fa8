// SPDX-License-Identifier: Apache-2.0
//
// ExpectedShapes: the shapes that tensors of a step probably have. EstimateCosts: estimates the
// cost of each node, for passes that compare orders or devices. Each pass that needs them calls
// them again, because the passes before it have changed the graph.
// Not thread-safe, because it writes to the context.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Infers the shapes of the present graph from the expected shapes of the feeds or, if these do not
// fit the graph or are not known, without them. A step may be fed other shapes. Errors are those of
// shape inference.
StatusOr<ShapeMap> ExpectedShapes(PassContext& context);

// Adds an estimate for each node of the present graph, of the expected shapes, to
// PassContext::costs. Errors are those of shape inference.
Status EstimateCosts(PassContext& context);

}  // namespace penstock
