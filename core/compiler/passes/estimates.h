// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Gives PassContext::costs an estimate for each node of the present graph, by shapes that are
// inferred from the expected shapes of the feeds.
Status EstimateCosts(PassContext& context);

}  // namespace penstock
