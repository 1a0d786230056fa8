// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/node_ancestors.h"

#include <algorithm>

namespace penstock {

NodeAncestors::NodeAncestors(absl::Span<Node* const> order, const std::vector<const Node*>& before)
    : order_(order) {
  int max_id = 0;
  for (const Node* node : order) max_id = std::max(max_id, node->id() + 1);
  row_of_.assign(max_id, -1);
  column_of_.assign(max_id, -1);
  for (size_t i = 0; i < order.size(); ++i) row_of_[order[i]->id()] = static_cast<int>(i);
  int columns = 0;
  for (const Node* node : before) {
    int& column = column_of_[node->id()];
    if (column < 0) column = columns++;
  }
  words_ = (columns + 63) / 64;
}

double NodeAncestors::num_bits() const {
  return 64.0 * static_cast<double>(words_) * static_cast<double>(order_.size());
}

void NodeAncestors::Find() {
  bits_.assign(words_ * order_.size(), 0);
  for (const Node* node : order_) {
    for (const Endpoint& in : node->inputs()) Add(in.node, *node);
    for (const Node* before : node->control_inputs()) Add(before, *node);
  }
}

void NodeAncestors::Add(const Node* before, const Node& node) {
  if (before == nullptr || row_of_[before->id()] >= row_of_[node.id()]) return;  // a back edge
  uint64_t* const row = bits_.data() + words_ * row_of_[node.id()];
  const uint64_t* const from = bits_.data() + words_ * row_of_[before->id()];
  for (size_t w = 0; w < words_; ++w) row[w] |= from[w];
  const int column = column_of_[before->id()];
  if (column >= 0) row[column / 64] |= uint64_t{1} << (column % 64);
}

}  // namespace penstock
