// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/passes.h"

namespace penstock {

Status DropControls(PassContext& context) {
  for (Node* node : context.graph->nodes()) {
    // A Merge does not wait for all of its inputs; a node that runs dead tells an input from an
    // order.
    const OpDef& op = node->op();
    if (node->control_inputs().empty() || op.flow == FlowOp::kMerge || op.runs_dead) continue;
    for (const Endpoint& input : node->inputs()) {
      context.graph->RemoveControlEdge(input.node, node);
    }
  }
  return OkStatus();
}

}  // namespace penstock
