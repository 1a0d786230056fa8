// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/colocation_targets.h"

#include <vector>

#include "core/op/private_attrs.h"

namespace penstock {

absl::flat_hash_set<std::string> ColocationTargets(const Graph& graph) {
  absl::flat_hash_set<std::string> names;
  for (const Node* node : graph.nodes()) {
    const auto* groups = node->attr<std::vector<std::string>>(kColocationAttr);
    if (groups == nullptr) continue;
    for (const std::string& group : *groups) {
      if (group != kColocatedWith + node->name()) names.insert(group.substr(group.find('@') + 1));
    }
  }
  return names;
}

}  // namespace penstock
