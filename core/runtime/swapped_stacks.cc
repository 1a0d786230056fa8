// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/swapped_stacks.h"

#include <algorithm>
#include <utility>

#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

bool HasSwapMemory(const Node* node) {
  const bool* const swap = IsStackPush(*node) ? node->attr<bool>("swap_memory") : nullptr;
  return swap != nullptr && *swap;
}

// A partition of the nodes' outputs into sets of values that may be equal. Each set of stack
// handles is linked to a second set: the values that are pushed on these stacks.
class AliasSets {
 public:
  explicit AliasSets(int count) : parent_(count), content_(count, kNone) {
    for (int i = 0; i < count; ++i) parent_[i] = i;
  }

  int Find(int value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }

  void Unify(int a, int b) {
    std::vector<std::pair<int, int>> pairs = {{a, b}};
    while (!pairs.empty()) {
      a = Find(pairs.back().first);
      b = Find(pairs.back().second);
      pairs.pop_back();
      if (a == b) continue;
      parent_[a] = b;
      if (content_[b] == kNone) {
        content_[b] = content_[a];
      } else if (content_[a] != kNone) {
        pairs.emplace_back(content_[a], content_[b]);
      }
    }
  }

  void UnifyContent(int stack, int element) {
    int& content = content_[Find(stack)];
    if (content == kNone) {
      content = element;
    } else {
      Unify(content, element);
    }
  }

 private:
  static constexpr int kNone = -1;

  std::vector<int> parent_;
  std::vector<int> content_;
};

}  // namespace

SwappedStacks SwappedStacks::Find(const Graph& graph) {
  SwappedStacks found;
  const std::vector<Node*> nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), HasSwapMemory)) return found;

  AliasSets values(graph.max_id());  // all outputs of a node count as one value
  for (const Node* node : nodes) {
    const FlowOp flow = FlowOpOf(*node);
    if (flow != FlowOp::kNone || node->op().passes_through) {
      // The second input of an op other than Merge is a condition, not a value that is passed on.
      const int num_values = flow == FlowOp::kMerge ? node->num_inputs() : 1;
      for (int i = 0; i < num_values; ++i) values.Unify(node->id(), node->input(i).node->id());
    } else if (IsStackPush(*node)) {
      const int element = node->input(1).node->id();
      values.UnifyContent(node->input(0).node->id(), element);
      values.Unify(node->id(), element);
    } else if (IsStackPop(*node)) {
      values.UnifyContent(node->input(0).node->id(), node->id());
    }
  }

  std::vector<bool> swapped(graph.max_id());  // by stack
  const auto stack = [&](const Node* user) { return values.Find(user->input(0).node->id()); };
  for (const Node* node : nodes) {
    if (HasSwapMemory(node)) swapped[stack(node)] = true;
  }
  found.used_by_.resize(graph.max_id());
  for (const Node* node : nodes) {
    if (IsStackPush(*node) || IsStackPop(*node)) found.used_by_[node->id()] = swapped[stack(node)];
  }
  return found;
}

}  // namespace penstock
