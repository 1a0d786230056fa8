// SPDX-License-Identifier: Apache-2.0
//
// Branches: on which sides of which conditionals the outputs of a graph are. A Switch leads onto
// one side, the Merge of a conditional leads away from both; what any input is on, a node is on
// too. Loops end it: inside of a frame only the conditionals of that frame count. A value.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"
#include "core/graph/loop_frames.h"

namespace penstock {

struct Branch {
  Endpoint predicate;
  int side = 0;  // 1: where the predicate is true
  bool operator==(const Branch&) const = default;
};
using BranchPath = std::vector<Branch>;  // outermost first

class Branches {
 public:
  // `frames` are those of `graph`.
  static StatusOr<Branches> Find(const Graph& graph, const LoopFrames& frames);

  const BranchPath& Of(Endpoint output) const;
  // For nodes that were added since: on the same path as `like`.
  void Record(Endpoint output, Endpoint like);
  // The conditional that a Merge of two inputs ends; `sides[i]` is the side that input i comes
  // from. InvalidArgument where its inputs are not the two sides of one.
  StatusOr<Endpoint> EndedBy(const Node& merge, int sides[2]) const;

 private:
  using Key = std::pair<int, int>;  // node, output; -1 for all outputs
  BranchPath PathInto(const Node& node) const;

  absl::flat_hash_map<Key, BranchPath> paths_;  // those that are not empty
};

}  // namespace penstock
