// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/branches.h"

#include <algorithm>

namespace penstock {
namespace {

bool Contains(const BranchPath& path, const Branch& branch) {
  return std::find(path.begin(), path.end(), branch) != path.end();
}

// Adds the branches of `other` to `*path`. One of the two paths is a prefix of the other, because
// conditionals are nested.
void MergePaths(BranchPath* path, const BranchPath& other) {
  const BranchPath shorter = path->size() < other.size() ? std::exchange(*path, other) : other;
  for (const Branch& branch : shorter) {
    if (!Contains(*path, branch)) path->push_back(branch);
  }
}

BranchPath Common(const BranchPath& a, const BranchPath& b) {
  BranchPath common;
  for (const Branch& branch : a) {
    if (Contains(b, branch)) common.push_back(branch);
  }
  return common;
}

bool EndsLoopTest(const Node& node, const LoopFrames& frames) {
  return node.input(1).node == frames.frames[frames.of_node[node.id()]].loop_cond;
}

}  // namespace

const BranchPath& Branches::Of(Endpoint output) const {
  static const BranchPath* const kNone = new BranchPath;
  for (const int index : {-1, output.index}) {
    const auto it = paths_.find(Key{output.node->id(), index});
    if (it != paths_.end()) return it->second;
  }
  return *kNone;
}

void Branches::Record(Endpoint output, Endpoint like) {
  const BranchPath path = Of(like);
  if (!path.empty()) paths_[{output.node->id(), output.index}] = path;
}

BranchPath Branches::PathInto(const Node& node) const {
  BranchPath path;
  for (const Node* control : node.control_inputs()) {
    // A control edge from a Switch puts the node on no side, because the Switch runs for both.
    if (FlowOpOf(*control) != FlowOp::kSwitch) {
      MergePaths(&path, Of({const_cast<Node*>(control), 0}));
    }
  }
  const bool merges = FlowOpOf(node) == FlowOp::kMerge;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint source = node.input(i);
    if (source.node == nullptr || IsLoopBackEdge(*source.node, node)) continue;
    if (!merges) {
      MergePaths(&path, Of(source));
    } else if (i == 0) {
      path = Of(source);
    } else {
      path = Common(path, Of(source));
    }
  }
  return path;
}

StatusOr<Branches> Branches::Find(const Graph& graph, const LoopFrames& frames) {
  Branches found;
  std::vector<BranchPath> loops(frames.frames.size());  // by frame: the path of its Enters
  ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  for (Node* node : order) {
    BranchPath path = found.PathInto(*node);
    switch (FlowOpOf(*node)) {
      case FlowOp::kEnter:
        MergePaths(&loops[frames.of_outputs[node->id()]], path);
        continue;
      case FlowOp::kExit:
        path = loops[frames.of_node[node->id()]];
        break;
      case FlowOp::kSwitch:
        if (node->num_inputs() != 2 || EndsLoopTest(*node, frames)) break;
        for (int side = 0; side < 2; ++side) {
          BranchPath onto = path;
          onto.push_back({node->input(1), side});
          found.paths_[{node->id(), side}] = std::move(onto);
        }
        continue;
      default:
        break;
    }
    if (!path.empty()) found.paths_[{node->id(), -1}] = std::move(path);
  }
  return found;
}

StatusOr<Endpoint> Branches::ConditionalEndedBy(const Node& merge, int sides[2]) const {
  if (merge.num_inputs() == 2) {
    const BranchPath &first = Of(merge.input(0)), &second = Of(merge.input(1));
    for (const Branch& branch : first) {
      if (!Contains(second, {branch.predicate, 1 - branch.side})) continue;
      sides[0] = branch.side;
      sides[1] = 1 - branch.side;
      return branch.predicate;
    }
  }
  return InvalidArgument("'", merge.name(), "' does not merge the two sides of one conditional");
}

}  // namespace penstock
