// SPDX-License-Identifier: Apache-2.0
#include "core/gradients/kept_values.h"

#include <map>

#include "core/graph/loop_frames.h"

namespace penstock {
namespace {

bool PassesStackOn(const Node& node) {
  const FlowOp op = FlowOpOf(node);
  return op == FlowOp::kEnter || op == FlowOp::kSwitch || node.op().passes_through;
}

// Returns the node that made the stack of a push or a pop; null if it cannot be found. Terminates
// because it does not follow Merges, and every cycle of data edges has one.
const Node* StackOf(const Node& user) {
  const Node* node = user.input(0).node;
  while (node != nullptr && PassesStackOn(*node)) node = node->input(0).node;
  return node;
}

}  // namespace

KeptValues KeptValues::Find(const Graph& graph) {
  struct Users {
    const Node* stack = nullptr;
    std::vector<const Node*> pushes, pops;
  };
  std::map<int, Users> users;  // by stack
  for (const Node* node : graph.nodes()) {
    const bool push = IsStackPush(*node);
    if (!push && !IsStackPop(*node)) continue;
    const Node* const stack = StackOf(*node);
    if (stack == nullptr) continue;
    Users& of_stack = users[stack->id()];
    of_stack.stack = stack;
    (push ? of_stack.pushes : of_stack.pops).push_back(node);
  }
  KeptValues found;
  for (const auto& [id, of_stack] : users) {
    if (of_stack.stack->op().stack != StackOp::kMake) continue;
    if (of_stack.pushes.size() != 1 || of_stack.pops.size() != 1) continue;
    const Node *push = of_stack.pushes[0], *pop = of_stack.pops[0];
    found.pairs_.emplace_back(push, pop);
    found.other_[push] = pop;
    found.other_[pop] = push;
  }
  return found;
}

const Node* KeptValues::PushOf(const Node& pop) const {
  const auto it = IsStackPop(pop) ? other_.find(&pop) : other_.end();
  return it == other_.end() ? nullptr : it->second;
}

const Node* KeptValues::PopOf(const Node& push) const {
  const auto it = IsStackPush(push) ? other_.find(&push) : other_.end();
  return it == other_.end() ? nullptr : it->second;
}

}  // namespace penstock
