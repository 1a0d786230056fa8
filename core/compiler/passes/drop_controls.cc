// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/passes.h"

namespace penstock {

Status DropControls(PassContext& context) {
  for (Node* node : context.graph->nodes()) {
    // These nodes keep their control edges: a Merge does not wait for all of its inputs, and a node
    // that runs dead may treat a dead input and a dead control input differently.
    const OpDef& op = node->op();
    if (node->control_inputs().empty() || op.flow == FlowOp::kMerge || op.runs_dead) continue;
    for (const Endpoint& input : node->inputs()) {
      context.graph->RemoveControlEdge(input.node, node);
    }
  }
  return OkStatus();
}

}  // namespace penstock
