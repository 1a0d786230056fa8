// SPDX-License-Identifier: Apache-2.0
//
// EstimateCosts: what the passes that place nodes, order them or plan memory call before they read
// costs.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Gives PassContext::costs an estimate for each node of the graph as it is now, beginning with the
// shapes that are fed.
Status EstimateCosts(PassContext& context);

}  // namespace penstock
