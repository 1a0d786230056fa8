// SPDX-License-Identifier: Apache-2.0
//
// EstimateCosts: predicts what each node costs, for the passes that weigh one order or device
// against another. Each pass that needs estimates makes them anew, because the passes before it
// have changed the graph. Not thread-safe: it writes to the context.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Gives PassContext::costs an estimate for each node of the present graph, by shapes that are
// inferred from the expected shapes of the feeds; if these do not fit the graph, without them.
// Errors are those of shape inference.
Status EstimateCosts(PassContext& context);

}  // namespace penstock
