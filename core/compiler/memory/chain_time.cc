// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/chain_time.h"

#include <algorithm>

namespace penstock {
namespace {

// Calls `add` for each node for which `node` waits, except over the back edges of loops.
template <class Add>
void ForPredecessors(const std::vector<int>& row_of, const Node& node, Add add) {
  const auto visit = [&](const Node* before) {
    if (before != nullptr && row_of[before->id()] < row_of[node.id()]) add(*before);
  };
  for (const Endpoint& in : node.inputs()) visit(in.node);
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
    its = std::max(its, index_[node->id()]);
  }
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
