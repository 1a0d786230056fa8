// SPDX-License-Identifier: Apache-2.0
//
// Makes the op reference from the registry, as one HTML page: each op with its text, inputs,
// outputs, attributes, kernels and gradient, and a field that filters by name. The page loads no
// other files.
#pragma once

#include <string>
#include <vector>

#include "core/op/registry.h"

namespace penstock {

// Returns the page. `ops` must be ops of the registry.
std::string OpPage(const Registry& registry, const std::vector<const OpDef*>& ops);

}  // namespace penstock
