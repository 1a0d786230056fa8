// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/compiler/passes/passes.h"

namespace penstock {
namespace {

// Returns whether the node reads a variable through a reference. The read fails if the variable has
// no value yet, and the step must report this error even if it needs only the value's shape.
bool ReadsReference(const Node& node) {
  const auto is_ref = [](const Endpoint& in) {
    return in.node != nullptr && in.node->output_type(in.index).ref;
  };
  return !node.op().allows_uninitialized_input &&
         std::any_of(node.inputs().begin(), node.inputs().end(), is_ref);
}

}  // namespace

Status RemoveDeadNodes(PassContext& context) {
  Graph* const graph = context.graph;
  const std::vector<std::string>& targets = context.options.targets;
  const absl::flat_hash_set<string_view> wanted(targets.begin(), targets.end());
  std::vector<const Node*> needed;  // the search visits the nodes in this order
  std::vector<bool> seen(graph->max_id());
  const auto need = [&](const Node* node) {
    if (!seen[node->id()]) needed.push_back(node);
    seen[node->id()] = true;
  };
  for (const Node* node : graph->nodes()) {
    const OpDef& op = node->op();
    if (op.stateful || op.end == EndOp::kFetch || wanted.contains(node->name()) ||
        ReadsReference(*node)) {
      need(node);
    }
  }
  for (size_t i = 0; i < needed.size(); ++i) {
    for (const Endpoint& input : needed[i]->inputs()) need(input.node);
    for (const Node* input : needed[i]->control_inputs()) need(input);
  }
  // The nodes of a loop are consumers of each other, so first remove all edges, then the nodes.
  std::vector<Node*> dead;
  for (Node* node : graph->nodes()) {
    if (seen[node->id()]) continue;
    dead.push_back(node);
    for (int i = 0; i < node->num_inputs(); ++i) RETURN_IF_ERROR(graph->SetInput(node, i, {}));
  }
  for (Node* node : dead) graph->RemoveNode(node);
  return OkStatus();
}

}  // namespace penstock
