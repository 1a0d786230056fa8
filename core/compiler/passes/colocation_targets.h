// SPDX-License-Identifier: Apache-2.0
//
// ColocationTargets: the nodes beside which other nodes must be placed. A pass that removes such a
// node would change the placement of the others.
#pragma once

#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/graph/graph.h"

namespace penstock {

// Returns the names of the nodes that the attribute `_class` of another node names.
absl::flat_hash_set<std::string> ColocationTargets(const Graph& graph);

}  // namespace penstock
