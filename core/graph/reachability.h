// SPDX-License-Identifier: Apache-2.0
//
// Reachability: which of many sources lead to a node. What a walk from each source would find, for
// 512 sources in one pass over the graph.
#pragma once

#include <bitset>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/graph/graph.h"

namespace penstock {

class Reachability {
 public:
  static constexpr size_t kSourcesMax = 512;
  using Sources = std::bitset<kSourcesMax>;
  struct Seed {
    const Node* node;
    size_t source;  // < kSourcesMax
  };

  // Borrows nothing. Follows the graph's edges as they are now, also those around loops; of data
  // inputs, those for which `source` returns a node, which is taken to be where the input leads
  // from.
  using Source = absl::FunctionRef<const Node*(const Node& node, int input)>;
  Reachability(const Graph& graph, Source source);

  // Forgets the seeds before, and lets each source lead from the nodes that it is a seed of.
  void Find(absl::Span<const Seed> seeds);
  // The sources that are a seed of `node`, or of a node from which edges lead to it. Valid until
  // the next Find. REQUIRES a node that the graph had at construction.
  const Sources& Of(const Node& node) const { return sources_[part_of_[node.id()]]; }
  // Nodes come in an order in which edges lead from lower to higher or equal numbers; nodes that
  // lead to each other (those of a loop) have the same.
  int Order(const Node& node) const { return part_of_[node.id()]; }

 private:
  std::vector<int> part_of_;      // by node id: its strongly connected part
  std::vector<int> first_input_;  // by part, and one more: where its inputs begin in ...
  std::vector<int> part_inputs_;  // ... the parts that lead to each part
  std::vector<Sources> sources_;  // by part
};

}  // namespace penstock
