// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/passes.h"
#include "core/compiler/placement/placer.h"

namespace penstock {

Status PlaceNodes(PassContext& context) {
  ASSIGN_OR_RETURN(const ShapeMap* const shapes, context.Shapes());
  context.costs.Estimate(*context.graph, *shapes, context.devices);
  ASSIGN_OR_RETURN(context.report.placement,
                   Place(context.devices, context.costs, context.options, context.graph));
  return OkStatus();
}

}  // namespace penstock
