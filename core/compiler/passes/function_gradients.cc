// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error_origin.h"
#include "core/compiler/passes/passes.h"
#include "core/gradients/gradients.h"
#include "core/graph/builder.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

bool StandsForGradients(const Node& node) { return node.FindAttr(kFunctionResultsAttr) != nullptr; }

// Replaces the outputs of `node` by the gradients for which it stands. InvalidArgument if its
// attribute does not fit its inputs. REQUIRES: the builder has no error yet.
Status Expand(Node* node, GraphBuilder& builder) {
  const int64_t* const attr = node->attr<int64_t>(kFunctionResultsAttr);
  const int64_t arguments = node->num_outputs(), results = attr != nullptr ? *attr : -1;
  if (results < 0 || results > node->num_inputs() ||
      2 * results + arguments != node->num_inputs()) {
    return InvalidArgument("attribute ", kFunctionResultsAttr, " does not fit the node's ",
                           node->num_inputs(), " inputs and ", arguments, " outputs");
  }
  Outputs inputs;
  for (const Endpoint& input : node->inputs()) {
    inputs.push_back(builder.OutputOf(input.node, input.index));
  }
  const Outputs ys(inputs.begin(), inputs.begin() + results),
      xs(inputs.begin() + results, inputs.end() - results),
      dys(inputs.end() - results, inputs.end());
  const GraphBuilder::Scope name = builder.NameScope(StrCat(node->name(), "/"));
  const GraphBuilder::Scope device = builder.DeviceScope(node->requested_device());
  ASSIGN_OR_RETURN(const std::vector<Gradient> gradients, AddGradients(builder, ys, xs, dys));
  for (int i = 0; i < node->num_outputs(); ++i) {
    const auto& edges = node->out_edges();
    const bool used = std::any_of(edges.begin(), edges.end(),
                                  [i](const OutEdge& edge) { return edge.src_index == i; });
    if (!used) continue;  // a handle, for example, has no gradient
    const Output dx = gradients[i].none() ? ZerosLike(xs[i]) : Dense(gradients[i]);
    RETURN_IF_ERROR(builder.status());
    Node* const made = builder.NodeOf(dx);
    RETURN_IF_ERROR(builder.mutable_graph().ReplaceUses({node, i}, {made, dx.index}));
  }
  return OkStatus();
}

}  // namespace

Status ExpandFunctionGradients(PassContext& context) {
  const std::vector<Node*> all = context.graph->nodes();
  if (std::none_of(all.begin(), all.end(), [](const Node* n) { return StandsForGradients(*n); })) {
    return OkStatus();
  }
  // The gradients of an inner function come first: an outer one differentiates them.
  ASSIGN_OR_RETURN(const std::vector<Node*> order, context.graph->TopologicalOrder());
  GraphBuilder builder(std::move(*context.graph));
  for (Node* const node : order) {
    if (!StandsForGradients(*node)) continue;
    RETURN_IF_ERROR(InNode(Expand(node, builder), node->name()));
    builder.mutable_graph().RemoveNode(node);
  }
  *context.graph = std::move(builder.mutable_graph());
  return OkStatus();
}

}  // namespace penstock
