// SPDX-License-Identifier: Apache-2.0
//
// NodeAncestors: computes which nodes of a given set have to end before a node begins. Takes one
// bit of memory for each pair of a node and a member of the set. A Merge begins when its first live
// input has come, and so waits only for the nodes for which all its inputs wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/graph/graph.h"

namespace penstock {

class NodeAncestors {
 public:
  // `order` has all nodes, each after the nodes for which it waits, except over the back edges of
  // loops. `before` is the set: the nodes that may be the first argument of Precedes. It may
  // contain duplicates.
  NodeAncestors(absl::Span<Node* const> order, const std::vector<const Node*>& before);

  // Returns the number of bits that Find will allocate.
  double num_bits() const;
  // Computes the ancestors of all nodes.
  void Find();

  // Returns whether `before` has to end before `node` begins; false for the same node. REQUIRES:
  // Find was called, and `before` was given to the constructor.
  bool Precedes(const Node& before, const Node& node) const {
    const int column = column_of_[before.id()];
    return (bits_[words_ * row_of_[node.id()] + column / 64] >> (column % 64) & 1) != 0;
  }

 private:
  bool IsBefore(const Node* before, const Node& node) const;
  std::vector<uint64_t> RowWith(const Node& node) const;
  void Add(const Node* before, const Node& node);
  void AddInputsOfMerge(const Node& merge);

  const absl::Span<Node* const> order_;
  std::vector<int> row_of_;     // by node id: the position in the order
  std::vector<int> column_of_;  // by node id; -1 for nodes that are not in `before`
  size_t words_ = 0;            // number of words in a row
  std::vector<uint64_t> bits_;
};

}  // namespace penstock
