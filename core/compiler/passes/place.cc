// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/estimates.h"
#include "core/compiler/passes/passes.h"
#include "core/compiler/placement/placer.h"

namespace penstock {

Status PlaceNodes(PassContext& context) {
  RETURN_IF_ERROR(EstimateCosts(context));
  ASSIGN_OR_RETURN(context.report.placement,
                   Place(context.devices, context.costs, context.options, context.graph));
  return OkStatus();
}

}  // namespace penstock
