// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/partition/partitioner.h"
#include "core/compiler/passes/passes.h"

namespace penstock {

Status MakePartitions(PassContext& context) {
  ASSIGN_OR_RETURN(context.partitions, PartitionGraph(*context.graph, context.devices));
  return OkStatus();
}

}  // namespace penstock
