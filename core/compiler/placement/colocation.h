// SPDX-License-Identifier: Apache-2.0
//
// ColocationGroups: which nodes must share a device, as disjoint sets (union-find) with the device
// constraint of each set. Single-threaded; a helper of the placer.
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
  // group ask for different devices: names the smallest set in conflict, which is two nodes, their
  // constraints, and the shortest chain of nodes that must share a device with their neighbours.
  static StatusOr<ColocationGroups> Of(const Graph& graph, bool allow_soft_placement);

  int Find(int node_id) const;  // the group's representative
  const DeviceName& constraint(int node_id) const { return groups_[Find(node_id)].constraint; }
  bool stateful(int node_id) const { return groups_[Find(node_id)].stateful; }
  // Returns the device constraint of the node itself; an empty one if it was overruled, or if the
  // node is a NextIteration.
  DeviceName ConstraintOf(const Node& node) const;
  // Returns the shortest chain of nodes that keeps two nodes of a group together, for an error; ""
  // if they are neighbours.
  std::string ChainBetween(const Node& a, const Node& b) const;

 private:
  struct Group {
    int parent = -1;  // a representative is its own parent
    int size = 1;
    DeviceName constraint;
    bool stateful = false;
    bool overruled = false;  // by node id: true if the node's constraint does not count
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
  Status Conflict(const Node& a, const Node& b) const;

  bool soft_ = false;
  std::vector<Group> groups_;
  std::vector<std::pair<const Node*, const Node*>> joins_;  // in the order in which Join made them
};

}  // namespace penstock
