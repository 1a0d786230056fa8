// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/passes.h"

namespace penstock {

Status DropControls(PassContext& context) {
  for (Node* node : context.graph->nodes()) {
    // Two kinds of nodes keep their control edges: a Merge, which does not wait for all its data
    // inputs, and a node that runs even if an input is dead, because it may treat dead data inputs
    // and dead control inputs differently.
    const OpDef& op = node->op();
    if (node->control_inputs().empty() || op.flow == FlowOp::kMerge || op.runs_dead) continue;
    for (const Endpoint& input : node->inputs()) {
      context.graph->RemoveControlEdge(input.node, node);
    }
  }
  return OkStatus();
}

}  // namespace penstock
