// SPDX-License-Identifier: Apache-2.0
//
// Reachability: finds from which of up to 512 sources each node can be reached, in one pass over
// the graph instead of one walk per source.
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

  // Copies the graph's present edges, including loop back edges, and does not borrow the graph. For
  // each data input, `source` returns the node that counts as the input's source; null: the edge is
  // ignored.
  using Source = absl::FunctionRef<const Node*(const Node& node, int input)>;
  Reachability(const Graph& graph, Source source);

  // Computes which nodes each source reaches: the source's seeds, and all nodes to which edges lead
  // from them. Replaces the result of the last call.
  void Find(absl::Span<const Seed> seeds);
  // Returns the sources that reach `node`. Valid until the next Find. REQUIRES: the graph had the
  // node at construction.
  const Sources& Of(const Node& node) const { return sources_[component_of_[node.id()]]; }
  // Returns the node's number in a topological order: edges lead from lower to higher or equal
  // numbers. Nodes on a common cycle (a loop) have the same number.
  int Order(const Node& node) const { return component_of_[node.id()]; }

 private:
  std::vector<int> component_of_;      // by node id: its strongly connected component
  std::vector<int> first_input_;       // component c has the inputs component_inputs_[i] with
  std::vector<int> component_inputs_;  // first_input_[c] <= i < first_input_[c + 1]
  std::vector<Sources> sources_;       // by component
};

}  // namespace penstock
