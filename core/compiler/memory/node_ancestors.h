// SPDX-License-Identifier: Apache-2.0
//
// NodeAncestors: which of some nodes have to end before a node begins. A bit per pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/graph/graph.h"

namespace penstock {

class NodeAncestors {
 public:
  // `order` has all nodes, each after those that it waits for, but for the back edges of loops,
  // which do not count. `before` are the nodes that may be asked about, any number of times each.
  NodeAncestors(absl::Span<Node* const> order, const std::vector<const Node*>& before);

  // How many bits Find will need.
  double num_bits() const;
  void Find();

  // REQUIRES Find, and that `before` was given to the constructor. A node does not precede itself.
  bool Precedes(const Node& before, const Node& node) const {
    const int column = column_of_[before.id()];
    return (bits_[words_ * row_of_[node.id()] + column / 64] >> (column % 64) & 1) != 0;
  }

 private:
  void Add(const Node* before, const Node& node);

  const absl::Span<Node* const> order_;
  std::vector<int> row_of_;     // by node id: the position in the order
  std::vector<int> column_of_;  // by node id; -1: none
  size_t words_ = 0;            // of a row
  std::vector<uint64_t> bits_;
};

}  // namespace penstock
