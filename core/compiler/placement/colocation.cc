// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/colocation.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/error_origin.h"
#include "core/graph/loop_frames.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

bool HoldsState(const Node& node) {
  // A resource handle or reference made here, rather than passed on.
  for (int i = 0; i < node.num_outputs(); ++i) {
    const EdgeType type = node.output_type(i);
    if (type.ref || type.dtype == DType::kResource) return true;
  }
  return false;
}

}  // namespace

StatusOr<ColocationGroups> ColocationGroups::Of(const Graph& graph, bool allow_soft_placement) {
  ColocationGroups groups;
  groups.soft_ = allow_soft_placement;
  RETURN_IF_ERROR(groups.Init(graph));
  return groups;
}

int ColocationGroups::Find(int id) const {
  while (groups_[id].parent != id) id = groups_[id].parent;
  return id;
}

Status ColocationGroups::Init(const Graph& graph) {
  groups_.resize(graph.max_id());
  const std::vector<Node*> nodes = graph.nodes();
  for (const Node* node : nodes) {
    Group& group = groups_[node->id()];
    group.parent = node->id();
    group.because = node;
    group.stateful = HoldsState(*node);
    // A back edge stays on its device: nothing can be received for an iteration yet to begin.
    const bool follows_merge = FlowOpOf(*node) == FlowOp::kNextIteration;
    StatusOr<DeviceName> wanted = DeviceName::Parse(follows_merge ? "" : node->requested_device());
    if (!wanted.ok()) return InNode(wanted.status(), node->name());
    group.constraint = *std::move(wanted);
  }
  for (const Node* node : nodes) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      const EdgeType type = node->input_type(i);
      const bool handle = type.dtype == DType::kResource;
      const bool shares = type.ref || handle || IsLoopBackEdge(*node->input(i).node, *node);
      if (shares) RETURN_IF_ERROR(Join(*node->input(i).node, *node, handle));
    }
    const AttrValue* classes = node->FindAttr(kColocationAttr);
    const auto* names = classes ? classes->get<std::vector<std::string>>() : nullptr;
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      if (!absl::StartsWith(name, kColocatedWith)) continue;
      // The node named may have been pruned away; then there is nothing to sit beside.
      const Node* other = graph.FindNode(string_view(name).substr(sizeof(kColocatedWith) - 1));
      if (other != nullptr) RETURN_IF_ERROR(Join(*other, *node));
    }
  }
  return OkStatus();
}

Status ColocationGroups::Join(const Node& a, const Node& b, bool handle) {
  int into = Find(a.id());
  int from = Find(b.id());
  if (into == from) return OkStatus();
  StatusOr<DeviceName> both = groups_[into].constraint.Merge(groups_[from].constraint, soft_);
  // A node that uses a handle goes where the resource is, even if it asks for another device:
  // functions that set devices do not look through branches and loops.
  if (!both.ok() && handle) both = groups_[into].constraint;
  if (!both.ok()) {
    return InvalidArgument(
        "Cannot colocate nodes '", a.name(), "' and '", b.name(), "': '",
        groups_[into].because->name(), "' asks for device '", groups_[into].constraint.ToString(),
        "' and '", groups_[from].because->name(), "' for '", groups_[from].constraint.ToString(),
        "'. Give both the same device, or none.");
  }
  const Node* because =
      groups_[into].constraint == DeviceName() ? groups_[from].because : groups_[into].because;
  if (groups_[into].size < groups_[from].size) std::swap(into, from);
  groups_[from].parent = into;
  groups_[into].size += groups_[from].size;
  groups_[into].stateful |= groups_[from].stateful;
  groups_[into].constraint = *std::move(both);
  groups_[into].because = because;
  return OkStatus();
}

}  // namespace penstock
