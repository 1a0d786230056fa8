// SPDX-License-Identifier: Apache-2.0
//
// ChainTime: divides a step into phases by a chain of nodes of one device that run one after the
// other in every order: the longest path through nodes of the device. Takes linear time and memory.
// Private to this folder.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/compiler/memory/buffer_ranges.h"
#include "core/compiler/memory/memory_model.h"
#include "core/graph/graph.h"

namespace penstock {

class ChainTime {
 public:
  // `order` has all nodes, each after the nodes that it waits for, and a Merge after all its inputs
  // but back edges.
  ChainTime(const MemoryModel& model, absl::Span<Node* const> order, int device);

  // Returns whether a node of the chain shows that `before` has to end before `node` begins.
  bool Precedes(const Node& before, const Node& node) const {
    return &before != &node && before_[before.id()] <= after_[node.id()];
  }
  // Phase 2 * i lasts from the end of the chain's node i - 1 to the start of node i; phase 2 * i +
  // 1 lasts while node i runs. The last phase begins when the last node of the chain has ended.
  int num_phases() const { return 2 * static_cast<int>(chain_.size()) + 1; }
  // Returns the first phase in which the node may run.
  int FirstPhase(const Node& node) const;
  // Returns the last phase in which the node may run.
  int LastPhase(const Node& node) const;
  // Returns the chain's node that runs in the phase, or before which the phase ends; for the last
  // phase, the last node. REQUIRES: the chain is not empty.
  const Node& NodeOf(int phase) const;
  bool empty() const { return chain_.empty(); }

 private:
  void FindChain(const MemoryModel& model, absl::Span<Node* const> order, int device);
  void FindAfter(absl::Span<Node* const> order);
  void FindBefore(absl::Span<Node* const> order);
  int AfterBranches(const Node& merge) const;

  std::vector<int> row_of_;         // by node id: the position in the order
  std::vector<const Node*> chain_;  // in order
  std::vector<int> index_;          // by node id: the position in the chain, or -1
  std::vector<int> after_;   // by node id: the last node of the chain that it waits for, or itself
  std::vector<int> before_;  // by node id: the first node of the chain that waits for it, or itself
};

}  // namespace penstock
