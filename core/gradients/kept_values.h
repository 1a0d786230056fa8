// SPDX-License-Identifier: Apache-2.0
//
// KeptValues: finds for each StackPop the StackPush that has pushed its values. Loops push the
// values that their gradients need on stacks. No edge leads from the push to the pop, but a
// second-order gradient flows from the pop to the push. Private to this folder.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"

namespace penstock {

class KeptValues {
 public:
  // Pairs pushes and pops by the node that made their stack. The stack's handle reaches them
  // through Enters and Switches. Leaves out stacks with more than one push or pop, and stacks whose
  // handle comes from another op.
  static KeptValues Find(const Graph& graph);

  // Return the other node of the node's pair; null if the node belongs to no pair.
  const Node* PushOf(const Node& pop) const;
  const Node* PopOf(const Node& push) const;
  const std::vector<std::pair<const Node*, const Node*>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<const Node*, const Node*>> pairs_;  // push, pop
  absl::flat_hash_map<const Node*, const Node*> other_;     // push -> pop, pop -> push
};

}  // namespace penstock
