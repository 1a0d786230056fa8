// SPDX-License-Identifier: Apache-2.0
//
// SwappedStacks: finds the stacks that keep their elements in host memory, because a StackPush on
// them has `swap_memory`. Private to this folder.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace penstock {

class SwappedStacks {
 public:
  // Finds which pushes and pops use the same stack by unifying handles along edges (Steensgaard,
  // "Points-to analysis in almost linear time", POPL 1996), because handles pass into loops and
  // branches, and nested loops push handles on stacks, too.
  static SwappedStacks Find(const Graph& graph);

  // Returns whether `node` pushes to a stack in host memory or pops from one.
  bool IsUsedBy(const Node& node) const {
    return static_cast<size_t>(node.id()) < used_by_.size() && used_by_[node.id()];
  }

 private:
  std::vector<bool> used_by_;  // by node id; empty: no such stack
};

}  // namespace penstock
