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

// The same limit as for an import (core/graph/graph_proto.h): nested gradients multiply the number
// of nodes.
constexpr int kNodesMax = 1'000'000;

bool StandsForGradients(const Node& node) { return node.FindAttr(kFunctionResultsAttr) != nullptr; }

// Replaces `node` by a NoOp of the same name, which runs after `made` and before the nodes that
// waited for `node`. REQUIRES: all uses of its outputs have been replaced.
Status ReplaceByNoOp(Node* node, std::vector<Node*> made, Graph& graph) {
  const std::vector<Node*> after = node->control_outputs();
  Graph::NodeSpec spec{.name = node->name(),
                       .op = "NoOp",
                       .control_inputs = std::move(made),
                       .device = node->requested_device()};
  spec.control_inputs.insert(spec.control_inputs.end(), node->control_inputs().begin(),
                             node->control_inputs().end());
  graph.RemoveNode(node);
  ASSIGN_OR_RETURN(Node* const no_op, graph.AddNode(std::move(spec)));
  for (Node* next : after) graph.AddControlEdge(no_op, next);
  return OkStatus();
}

// Replaces `node` by the gradients for which it stands. Adds only gradients that have a consumer,
// unless the node is a target or has control outputs. InvalidArgument if its attribute does not fit
// its inputs. REQUIRES: the builder has no error yet.
Status Expand(Node* node, bool is_target, GraphBuilder& builder) {
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
  const bool runs_all = is_target || !node->control_outputs().empty();
  std::vector<Node*> all;
  for (int i = 0; i < node->num_outputs(); ++i) {
    const auto& edges = node->out_edges();
    const bool used = std::any_of(edges.begin(), edges.end(),
                                  [i](const OutEdge& edge) { return edge.src_index == i; });
    // An argument without a gradient, such as a handle, needs none if no node uses it.
    if (!used && (!runs_all || gradients[i].none())) continue;
    const Output dx = gradients[i].none() ? ZerosLike(xs[i]) : Dense(gradients[i]);
    RETURN_IF_ERROR(builder.status());
    Node* const made = builder.NodeOf(dx);
    RETURN_IF_ERROR(builder.mutable_graph().ReplaceUses({node, i}, {made, dx.index}));
    all.push_back(made);
  }
  if (runs_all) return ReplaceByNoOp(node, std::move(all), builder.mutable_graph());
  builder.mutable_graph().RemoveNode(node);
  return OkStatus();
}

}  // namespace

Status ExpandFunctionGradients(PassContext& context) {
  const std::vector<Node*> all = context.graph->nodes();
  if (std::none_of(all.begin(), all.end(), [](const Node* n) { return StandsForGradients(*n); })) {
    return OkStatus();
  }
  // Inner functions come first, because the gradient of an outer function differentiates the nodes
  // of their gradients.
  ASSIGN_OR_RETURN(const std::vector<Node*> order, context.graph->TopologicalOrder());
  const std::vector<std::string>& targets = context.options.targets;
  GraphBuilder builder(std::move(*context.graph));
  for (Node* const node : order) {
    if (!StandsForGradients(*node)) continue;
    const std::string name = node->name();
    const bool is_target = std::find(targets.begin(), targets.end(), name) != targets.end();
    RETURN_IF_ERROR(InNode(Expand(node, is_target, builder), name));
    if (builder.graph().num_nodes() > kNodesMax) {
      return InNode(ResourceExhausted("with the gradients of functions the step has more than ",
                                      kNodesMax, " nodes"),
                    name);
    }
  }
  *context.graph = std::move(builder.mutable_graph());
  return OkStatus();
}

}  // namespace penstock
