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
    if (node->op().flow == FlowOp::kMerge) {
      AddInputsOfMerge(*node);
    } else {
      for (const Endpoint& in : node->inputs()) Add(in.node, *node);
    }
    for (const Node* before : node->control_inputs()) Add(before, *node);
  }
}

// Returns false for no node, and for the back edge of a loop.
bool NodeAncestors::IsBefore(const Node* before, const Node& node) const {
  return before != nullptr && row_of_[before->id()] < row_of_[node.id()];
}

// Returns the ancestors of the node, and the node itself.
std::vector<uint64_t> NodeAncestors::RowWith(const Node& node) const {
  const uint64_t* const from = bits_.data() + words_ * row_of_[node.id()];
  std::vector<uint64_t> row(from, from + words_);
  const int column = column_of_[node.id()];
  if (column >= 0) row[column / 64] |= uint64_t{1} << (column % 64);
  return row;
}

void NodeAncestors::Add(const Node* before, const Node& node) {
  if (!IsBefore(before, node)) return;
  uint64_t* const row = bits_.data() + words_ * row_of_[node.id()];
  const uint64_t* const from = bits_.data() + words_ * row_of_[before->id()];
  for (size_t w = 0; w < words_; ++w) row[w] |= from[w];
  const int column = column_of_[before->id()];
  if (column >= 0) row[column / 64] |= uint64_t{1} << (column % 64);
}

// Adds what all inputs of the Merge have in common.
void NodeAncestors::AddInputsOfMerge(const Node& merge) {
  std::vector<uint64_t> common(words_, 0);
  bool first = true;
  for (const Endpoint& in : merge.inputs()) {
    if (!IsBefore(in.node, merge)) continue;
    const std::vector<uint64_t> row = RowWith(*in.node);
    for (size_t w = 0; w < words_; ++w) common[w] = first ? row[w] : common[w] & row[w];
    first = false;
  }
  std::ranges::copy(common, bits_.begin() + static_cast<int64_t>(words_ * row_of_[merge.id()]));
}

}  // namespace penstock
