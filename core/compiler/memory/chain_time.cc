// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/chain_time.h"

#include <algorithm>

namespace penstock {
namespace {

// Returns false for no node, and for the back edge of a loop.
bool IsBefore(const std::vector<int>& row_of, const Node* before, const Node& node) {
  return before != nullptr && row_of[before->id()] < row_of[node.id()];
}

// Returns whether the node is a Merge of several branches, which begins when its first live input
// has come.
bool MergesBranches(const std::vector<int>& row_of, const Node& node) {
  return node.op().flow == FlowOp::kMerge &&
         std::ranges::count_if(node.inputs(), [&](const Endpoint& in) {
           return IsBefore(row_of, in.node, node);
         }) > 1;
}

// Calls `add` for each node for which `node` waits in every order, except over the back edges of
// loops. Leaves out the branches that a Merge merges.
template <class Add>
void ForPredecessors(const std::vector<int>& row_of, const Node& node, Add add) {
  const auto visit = [&](const Node* before) {
    if (IsBefore(row_of, before, node)) add(*before);
  };
  if (!MergesBranches(row_of, node)) {
    for (const Endpoint& in : node.inputs()) visit(in.node);
  }
  for (const Node* before : node.control_inputs()) visit(before);
}

}  // namespace

ChainTime::ChainTime(const MemoryModel& model, absl::Span<Node* const> order, int device) {
  int max_id = 0;
  for (const Node* node : order) max_id = std::max(max_id, node->id() + 1);
  row_of_.assign(max_id, -1);
  for (size_t i = 0; i < order.size(); ++i) row_of_[order[i]->id()] = static_cast<int>(i);
  index_.assign(max_id, -1);
  FindChain(model, order, device);
  FindAfter(order);
  FindBefore(order);
}

// Finds the path that has the most nodes of the device.
void ChainTime::FindChain(const MemoryModel& model, absl::Span<Node* const> order, int device) {
  std::vector<int> length(row_of_.size());  // by node id: nodes of the device on the path to it
  std::vector<const Node*> previous(row_of_.size());
  const Node* last = nullptr;
  for (const Node* node : order) {
    int& its = length[node->id()];
    ForPredecessors(row_of_, *node, [&](const Node& before) {
      if (previous[node->id()] != nullptr && length[before.id()] <= its) return;
      its = length[before.id()];
      previous[node->id()] = &before;
    });
    its += model.DeviceOf(*node) == device;
    if (last == nullptr || its > length[last->id()]) last = node;
  }
  for (; last != nullptr; last = previous[last->id()]) {
    if (model.DeviceOf(*last) == device) chain_.push_back(last);
  }
  std::ranges::reverse(chain_);
  for (size_t i = 0; i < chain_.size(); ++i) index_[chain_[i]->id()] = static_cast<int>(i);
}

void ChainTime::FindAfter(absl::Span<Node* const> order) {
  after_.assign(row_of_.size(), -1);
  for (const Node* node : order) {
    int& its = after_[node->id()];
    ForPredecessors(row_of_, *node,
                    [&](const Node& before) { its = std::max(its, after_[before.id()]); });
    if (MergesBranches(row_of_, *node)) its = std::max(its, AfterBranches(*node));
    its = std::max(its, index_[node->id()]);
  }
}

// Returns the last node of the chain for which all inputs of the Merge wait.
int ChainTime::AfterBranches(const Node& merge) const {
  int after = static_cast<int>(chain_.size());
  for (const Endpoint& in : merge.inputs()) {
    if (IsBefore(row_of_, in.node, merge)) after = std::min(after, after_[in.node->id()]);
  }
  return after;
}

void ChainTime::FindBefore(absl::Span<Node* const> order) {
  before_.assign(row_of_.size(), static_cast<int>(chain_.size()));
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = **it;
    int& its = before_[node.id()];
    if (index_[node.id()] >= 0) its = index_[node.id()];
    ForPredecessors(row_of_, node, [&](const Node& before) {
      before_[before.id()] = std::min(before_[before.id()], its);
    });
  }
}

int ChainTime::FirstPhase(const Node& node) const {
  const int index = index_[node.id()];
  return index >= 0 ? 2 * index + 1 : 2 * (after_[node.id()] + 1);
}

int ChainTime::LastPhase(const Node& node) const {
  const int index = index_[node.id()];
  return index >= 0 ? 2 * index + 1 : 2 * before_[node.id()];
}

const Node& ChainTime::NodeOf(int phase) const {
  const int last = static_cast<int>(chain_.size()) - 1;
  return *chain_[std::min(phase / 2, last)];
}

}  // namespace penstock
