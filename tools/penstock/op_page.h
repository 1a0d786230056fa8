// SPDX-License-Identifier: Apache-2.0
//
// The op reference as one HTML page, made from the registry: each op with its text, inputs,
// outputs, attributes, kernels and gradient, and a field that filters by name. The page refers to
// nothing outside itself.
#pragma once

#include <string>
#include <vector>

#include "core/op/registry.h"

namespace penstock {

// `ops` are ops of the registry.
std::string OpPage(const Registry& registry, const std::vector<const OpDef*>& ops);

}  // namespace penstock
