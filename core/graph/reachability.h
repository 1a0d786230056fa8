// SPDX-License-Identifier: Apache-2.0
//
// Reachability: finds which of up to 512 sources lead to each node, in one pass over the graph
// instead of one walk per source.
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

  // Copies the graph's present edges, including loop back edges, and does not borrow the graph.
  // Data inputs are followed only if `source` returns a node, which counts as the input's source.
  using Source = absl::FunctionRef<const Node*(const Node& node, int input)>;
  Reachability(const Graph& graph, Source source);

  // Sets the seeds of every source, and forgets all earlier ones. A source leads to its seeds, the
  // nodes that `seeds` gives for it, and to all nodes after them.
  void Find(absl::Span<const Seed> seeds);
  // Returns the sources with a seed that is `node` or leads to it. Valid until the next Find.
  // REQUIRES: the graph had the node at construction.
  const Sources& Of(const Node& node) const { return sources_[part_of_[node.id()]]; }
  // Returns a number such that edges lead from lower to higher or equal numbers. Nodes that lead to
  // each other (those of a loop) have the same number.
  int Order(const Node& node) const { return part_of_[node.id()]; }

 private:
  std::vector<int> part_of_;      // by node id: its strongly connected component
  std::vector<int> first_input_;  // size components + 1. The inputs of component c are
  std::vector<int> part_inputs_;  // part_inputs_[first_input_[c], first_input_[c + 1])
  std::vector<Sources> sources_;  // by component
};

}  // namespace penstock
