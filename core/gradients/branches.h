// SPDX-License-Identifier: Apache-2.0
//
// Branches: finds for each output of a graph on which sides of which conditionals it is. Each
// output of a Switch begins one side; the Merge of a conditional ends both sides. If an input of a
// node is on a side, the node is on this side, too. Inside a frame only the conditionals of that
// frame count.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/graph/graph.h"
#include "core/graph/loop_frames.h"

namespace penstock {

struct Branch {
  Endpoint predicate;
  int side = 0;  // 1: the predicate is true
  bool operator==(const Branch&) const = default;
};
using BranchPath = std::vector<Branch>;  // the outermost conditional first

class Branches {
 public:
  // Finds the branches of `graph`, whose frames are `frames`.
  static StatusOr<Branches> Find(const Graph& graph, const LoopFrames& frames);

  const BranchPath& Of(Endpoint output) const;
  // Records that `output`, an output of a node added later, is on the same sides as `like`.
  void Record(Endpoint output, Endpoint like);
  // Returns the conditional that a Merge of two inputs ends; `sides[i]` is the side that input i
  // comes from. InvalidArgument if its inputs are not the two sides of one conditional.
  StatusOr<Endpoint> ConditionalEndedBy(const Node& merge, int sides[2]) const;

 private:
  using Key = std::pair<int, int>;  // node, output; -1 for all outputs
  BranchPath PathInto(const Node& node) const;

  absl::flat_hash_map<Key, BranchPath> paths_;  // only outputs on at least one side have an entry
};

}  // namespace penstock
