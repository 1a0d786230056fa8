// SPDX-License-Identifier: Apache-2.0
//
// KeptValues: which StackPop gives what which StackPush was given. Loops leave what their gradients
// need on stacks; no edge leads from the push to the pop, but a gradient of that gradient goes from
// the pop to the push. Private to this folder. A value.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"

namespace penstock {

class KeptValues {
 public:
  // Pairs them by the node that made the stack, whose handle is led into loops by Enter and onto
  // branches by Switch. Stacks with more pushes or pops than one, or whose handles come from
  // elsewhere, are left out.
  static KeptValues Find(const Graph& graph);

  // Null where there is none.
  const Node* PushOf(const Node& pop) const;
  const Node* PopOf(const Node& push) const;
  const std::vector<std::pair<const Node*, const Node*>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<const Node*, const Node*>> pairs_;  // push, pop
  absl::flat_hash_map<const Node*, const Node*> other_;     // one end by the other
};

}  // namespace penstock
