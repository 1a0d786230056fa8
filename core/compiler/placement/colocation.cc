// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/colocation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/error_origin.h"
#include "core/graph/loop_frames.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

bool HoldsState(const Node& node) {
  // The node makes a handle or a reference, or it passes one on. If it passes one on, it shares a
  // group with the node that makes it.
  for (int i = 0; i < node.num_outputs(); ++i) {
    const EdgeType type = node.output_type(i);
    if (type.refers_to_state()) return true;
  }
  return false;
}

// Returns the shortest chain from one of `begins` to a node for which `is_end` returns true; empty
// if there is none.
std::vector<const Node*> ShortestChain(
    const std::map<const Node*, std::vector<const Node*>>& neighbours,
    const std::vector<const Node*>& begins, absl::FunctionRef<bool(const Node&)> is_end) {
  std::map<const Node*, const Node*> before;
  std::deque<const Node*> next(begins.begin(), begins.end());
  for (const Node* begin : begins) before[begin] = nullptr;
  for (; !next.empty(); next.pop_front()) {
    const Node* const node = next.front();
    if (is_end(*node)) {
      std::vector<const Node*> chain;
      for (const Node* at = node; at != nullptr; at = before[at]) chain.push_back(at);
      std::reverse(chain.begin(), chain.end());
      return chain;
    }
    for (const Node* neighbour : neighbours.at(node)) {
      if (before.emplace(neighbour, node).second) next.push_back(neighbour);
    }
  }
  return {};
}

// Returns the last part of an error's text, which lists the chain; "" if the chain has at most two
// nodes.
std::string ChainText(const std::vector<const Node*>& chain) {
  if (chain.size() <= 2) return "";
  std::vector<std::string> names;
  for (const Node* node : chain) names.push_back(StrCat("'", node->name(), "'"));
  return StrCat("; each of these must be where the next one is: ", absl::StrJoin(names, ", "));
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
    group.stateful = HoldsState(*node);
    const Status parsed = DeviceName::Parse(node->requested_device()).status();
    if (!parsed.ok()) return InNode(parsed, node->name());
    group.constraint = ConstraintOf(*node);
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
      // The named node may have been pruned away; then the attribute has no effect.
      const Node* other = graph.FindNode(string_view(name).substr(sizeof(kColocatedWith) - 1));
      if (other != nullptr) RETURN_IF_ERROR(Join(*other, *node));
    }
  }
  return OkStatus();
}

Status ColocationGroups::Join(const Node& a, const Node& b, bool handle) {
  joins_.emplace_back(&a, &b);
  int into = Find(a.id());
  int from = Find(b.id());
  if (into == from) return OkStatus();
  StatusOr<DeviceName> both = groups_[into].constraint.Merge(groups_[from].constraint, soft_);
  // A node that uses a handle runs on the device of the resource, even if it requests another one:
  // device functions of clients do not see the resource through branches and loops.
  if (!both.ok() && handle) {
    Overrule(from);
    both = groups_[into].constraint;
  }
  if (!both.ok()) return ConflictError(a, b);
  if (groups_[into].size < groups_[from].size) std::swap(into, from);
  groups_[from].parent = into;
  groups_[into].size += groups_[from].size;
  groups_[into].stateful |= groups_[from].stateful;
  groups_[into].constraint = *std::move(both);
  return OkStatus();
}

void ColocationGroups::Overrule(int group) {
  for (size_t id = 0; id < groups_.size(); ++id) {
    if (groups_[id].parent >= 0 && Find(static_cast<int>(id)) == group) {
      groups_[id].overruled = true;
    }
  }
}

DeviceName ColocationGroups::ConstraintOf(const Node& node) const {
  if (groups_[node.id()].overruled) return {};
  // A NextIteration shares a device with its Merge: a value cannot be received for an iteration
  // that has not begun.
  if (FlowOpOf(node) == FlowOp::kNextIteration) return {};
  return *DeviceName::Parse(node.requested_device());
}

std::map<const Node*, std::vector<const Node*>> ColocationGroups::Neighbours() const {
  std::map<const Node*, std::vector<const Node*>> neighbours;
  for (const auto& [one, other] : joins_) {
    neighbours[one].push_back(other);
    neighbours[other].push_back(one);
  }
  return neighbours;
}

std::string ColocationGroups::ChainBetween(const Node& a, const Node& b) const {
  return ChainText(
      ShortestChain(Neighbours(), {&a}, [&](const Node& node) { return &node == &b; }));
}

// Returns the error for two constraints that contradict each other in a component of the device
// name (the job, the index, ...). The error names a node with each of the two values, and the chain
// between these nodes.
Status ColocationGroups::ConflictError(const Node& a, const Node& b) const {
  const std::map<const Node*, std::vector<const Node*>> neighbours = Neighbours();
  std::map<DeviceName, std::vector<const Node*>> wanted;  // by constraint: the nodes of a's group
  for (const auto& [node, its] : neighbours) {
    const DeviceName constraint = ConstraintOf(*node);
    if (Find(node->id()) == Find(a.id()) && constraint != DeviceName()) {
      wanted[constraint].push_back(node);
    }
  }
  std::vector<const Node*> shortest;
  for (const auto& [constraint, nodes] : wanted) {
    const auto conflicts = [&, &constraint = constraint](const Node& node) {
      return !constraint.Merge(ConstraintOf(node), soft_).ok();
    };
    std::vector<const Node*> chain = ShortestChain(neighbours, nodes, conflicts);
    if (shortest.empty() || (!chain.empty() && chain.size() < shortest.size())) {
      shortest = std::move(chain);
    }
  }
  CHECK(!shortest.empty(), "no two nodes are in conflict");
  const Node& first = *shortest.front();
  const Node& last = *shortest.back();
  return InvalidArgument("Cannot colocate nodes '", a.name(), "' and '", b.name(), "': '",
                         first.name(), "' asks for device '", first.requested_device(), "' and '",
                         last.name(), "' for '", last.requested_device(), "'", ChainText(shortest),
                         ". Give both the same device, or none.");
}

}  // namespace penstock
