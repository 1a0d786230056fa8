// SPDX-License-Identifier: Apache-2.0
//
// ColocationGroups: groups of nodes that must share a device, as disjoint sets (union-find) with
// the device constraint of each set. Not thread-safe. The placer uses it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class ColocationGroups {
 public:
  // Joins nodes by `_class`, ref edges and resource handles. InvalidArgument if members of one
  // group request different devices. The error names two such nodes, their constraints, and the
  // shortest chain of colocated nodes between them.
  static StatusOr<ColocationGroups> Of(const Graph& graph, bool allow_soft_placement);

  int Find(int node_id) const;  // the group's representative
  const DeviceName& constraint(int node_id) const { return groups_[Find(node_id)].constraint; }
  bool stateful(int node_id) const { return groups_[Find(node_id)].stateful; }
  // Returns the node's own device constraint; an empty one if its group is overruled, or if the
  // node is a NextIteration.
  DeviceName ConstraintOf(const Node& node) const;
  // Returns a text for an error with the shortest chain of colocated nodes between two nodes of a
  // group; "" if the two were joined directly.
  std::string ChainBetween(const Node& a, const Node& b) const;

 private:
  struct Group {
    int parent = -1;  // a representative is its own parent
    int size = 1;
    DeviceName constraint;
    bool stateful = false;
    bool overruled = false;  // groups_[id]: true if the constraint of node `id` does not count
  };
  // Joins the groups of a and b. If `handle`, b uses a resource that a makes or passes on, and a's
  // group overrules b's when their constraints conflict. Without `handle` a conflict is an
  // InvalidArgument.
  Status Join(const Node& a, const Node& b, bool handle = false);
  Status Init(const Graph& graph);
  // Marks the group's nodes as overruled: the constraint of the resource that they use replaces
  // theirs.
  void Overrule(int group);
  // Returns, for each node, the nodes with which it was joined.
  std::map<const Node*, std::vector<const Node*>> Neighbours() const;
  // Returns the error for nodes `a` and `b` that cannot be joined.
  Status ConflictError(const Node& a, const Node& b) const;

  bool soft_ = false;
  std::vector<Group> groups_;
  std::vector<std::pair<const Node*, const Node*>> joins_;  // in the order in which Join made them
};

}  // namespace penstock
