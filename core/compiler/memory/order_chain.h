// SPDX-License-Identifier: Apache-2.0
//
// OrderChain: adds control edges that make nodes run in an order, without making a deadlock
// possible. MemoryPlan uses it.
//
// Some nodes wait for others without an edge between them (OpDef::may_wait): a Dequeue for an
// Enqueue, a collective for its other ranks. If a control edge led from the Dequeue (or a node
// after the Dequeue) to the Enqueue (or a node before the Enqueue), the two would wait for each
// other forever. So an OrderChain adds no edge that makes a new path between nodes that may wait.
// A _Recv and a _Send count as such nodes: in a partial run, they are the step's feeds and fetches,
// and the client may give a feed only after a fetch.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/graph/graph.h"

namespace penstock {

class OrderChain {
 public:
  // The last nodes of one device's chain. The next node of the chain will wait for them.
  struct Ends {
    std::vector<Node*> free;
    std::vector<Node*> late;  // nodes that come after a node that may wait
  };

  // `order` has all nodes of the graph, each after the nodes for which it waits. Borrows the graph.
  OrderChain(Graph* graph, absl::Span<Node* const> order);

  // Prepares `node` for the functions below. Call this for each node, in the order of `order`.
  void Visit(const Node& node);
  // Makes `node` wait for the ends of the chain; if `node` may wait or leads to a node that may
  // wait, only for the ends in Ends::free.
  void WaitFor(const Ends& ends, Node* node);
  // Makes `node` wait for `before`, unless `node` may wait or leads to a node that may wait, and
  // `before` may wait or comes after such a node.
  void WaitForNode(Node* before, Node* node);
  // Makes the next node of the chain wait for `node`, too.
  void AddEnd(Node* node, Ends* ends) const;
  // Makes `node` wait for the ends of the chain, and the next node of the chain wait for `node`.
  void Append(Node* node, Ends* ends);

 private:
  bool leads_to_wait(const Node& node) const { return leads_to_wait_[node.id()]; }

  Graph& graph_;
  std::vector<bool> leads_to_wait_;  // by node id: it may wait, or precedes a node that may wait
  std::vector<bool> is_late_;        // by id of a visited node: may wait, or follows such a node
};

}  // namespace penstock
