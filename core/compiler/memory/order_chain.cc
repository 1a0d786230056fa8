// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/order_chain.h"

#include <algorithm>

namespace penstock {
namespace {

// Returns whether the node may wait for another one, or another one for the node, without an edge
// between them. In a partial run this is true of feeds and fetches, too: a client may give a feed
// only after a fetch. They are then a _Recv and a _Send; there are no others before partitioning.
bool MayWait(const Node& node) {
  const OpDef& op = node.op();
  return op.may_wait || op.end == EndOp::kSend || op.end == EndOp::kRecv;
}

}  // namespace

OrderChain::OrderChain(Graph* graph, absl::Span<Node* const> order)
    : graph_(*graph), leads_to_wait_(graph->max_id()), is_late_(graph->max_id()) {
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = **it;
    const auto leads = [&](const Node* next) { return leads_to_wait(*next); };
    leads_to_wait_[node.id()] =
        MayWait(node) || std::ranges::any_of(node.control_outputs(), leads) ||
        std::ranges::any_of(node.out_edges(), [&](const OutEdge& e) { return leads(e.dst); });
  }
}

void OrderChain::Visit(const Node& node) {
  const auto is_late = [&](const Node* before) {
    return before != nullptr && is_late_[before->id()];
  };
  is_late_[node.id()] =
      MayWait(node) || std::ranges::any_of(node.control_inputs(), is_late) ||
      std::ranges::any_of(node.inputs(), [&](const Endpoint& in) { return is_late(in.node); });
}

void OrderChain::WaitFor(const Ends& ends, Node* node) {
  for (Node* end : ends.free) graph_.AddControlEdge(end, node);
  if (leads_to_wait(*node)) return;
  for (Node* end : ends.late) graph_.AddControlEdge(end, node);
  if (!ends.late.empty()) is_late_[node->id()] = true;
}

void OrderChain::WaitForNode(Node* before, Node* node) {
  Ends ends;
  AddEnd(before, &ends);
  WaitFor(ends, node);
}

void OrderChain::AddEnd(Node* node, Ends* ends) const {
  (is_late_[node->id()] ? ends->late : ends->free).push_back(node);
}

void OrderChain::Append(Node* node, Ends* ends) {
  WaitFor(*ends, node);
  // `node` replaces the ends that it waits for. If `node` is late, the free ends stay, because
  // nodes that lead to a node that may wait must wait for the free ends instead of `node`.
  if (!leads_to_wait(*node)) ends->late.clear();
  if (!is_late_[node->id()]) ends->free.clear();
  AddEnd(node, ends);
}

}  // namespace penstock
