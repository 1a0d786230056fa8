// SPDX-License-Identifier: Apache-2.0
//
// ColocationGroups: which nodes must share a device, as disjoint sets (union-find) with the device
// constraint of each set. Single-threaded; a helper of the placer.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

class ColocationGroups {
 public:
  // Joins nodes by `_class`, ref edges and resource handles. InvalidArgument names both nodes and
  // both constraints if members of one group ask for different devices.
  static StatusOr<ColocationGroups> Of(const Graph& graph, bool allow_soft_placement);

  int Find(int node_id) const;  // the group's representative
  const DeviceName& constraint(int node_id) const { return groups_[Find(node_id)].constraint; }
  bool stateful(int node_id) const { return groups_[Find(node_id)].stateful; }

 private:
  struct Group {
    int parent = -1;  // itself for a representative
    int size = 1;
    DeviceName constraint;
    const Node* because = nullptr;  // the member that brought the constraint
    bool stateful = false;
  };
  // `handle`: b uses a resource that a makes or passes on.
  Status Join(const Node& a, const Node& b, bool handle = false);
  Status Init(const Graph& graph);

  bool soft_ = false;
  std::vector<Group> groups_;
};

}  // namespace penstock
