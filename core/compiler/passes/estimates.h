// SPDX-License-Identifier: Apache-2.0
//
// EstimateCosts: estimates the cost of each node, for passes that compare orders or devices. Each
// pass that needs estimates calls it again, because the passes before it have changed the graph.
// Not thread-safe, because it writes to the context.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Adds an estimate for each node of the present graph to PassContext::costs. Infers the shapes from
// the expected shapes of the feeds or, if these do not fit the graph, without them. Errors are
// those of shape inference.
Status EstimateCosts(PassContext& context);

}  // namespace penstock
