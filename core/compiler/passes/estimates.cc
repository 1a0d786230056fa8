// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/estimates.h"

#include <utility>

#include "core/graph/infer_shapes.h"

namespace penstock {
namespace {

// Returns the expected shapes of the graph's feeds.
KnownShapes ExpectedFeeds(const PassContext& context) {
  KnownShapes known;
  const std::vector<PartialShape>& shapes = context.options.feed_shapes;
  for (const Node* node : shapes.empty() ? std::vector<Node*>() : context.graph->nodes()) {
    if (node->op().end != EndOp::kFeed) continue;
    const auto index = static_cast<size_t>(*node->attr<int64_t>("index"));
    if (index < shapes.size()) known.emplace(node->id(), shapes[index]);
  }
  return known;
}

}  // namespace

StatusOr<ShapeMap> ExpectedShapes(PassContext& context) {
  KnownShapes known = ExpectedFeeds(context);
  if (!known.empty()) {
    StatusOr<ShapeMap> shapes = InferShapesWith(*context.graph, std::move(known));
    if (shapes.ok()) return shapes;
    // The expected shapes do not fit the graph. The step must still compile, because it may be fed
    // other shapes.
  }
  ASSIGN_OR_RETURN(const ShapeMap* const shapes, context.Shapes());
  return *shapes;
}

Status EstimateCosts(PassContext& context) {
  ASSIGN_OR_RETURN(const ShapeMap shapes, ExpectedShapes(context));
  context.costs.Estimate(*context.graph, shapes, context.devices);
  return OkStatus();
}

}  // namespace penstock
