// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "core/compiler/partition/partitioner.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"

namespace penstock {

namespace {

// Returns the device of all nodes; "" if there are several devices.
std::string OnlyDevice(const Graph& graph) {
  std::string device;
  for (int id = 0; id < graph.max_id(); ++id) {
    const Node* const node = graph.node(id);
    if (node == nullptr) continue;
    if (device.empty()) device = node->assigned_device();
    if (node->assigned_device() != device) return "";
  }
  return device;
}

}  // namespace

Status MakePartitions(PassContext& context) {
  // A graph for one device is moved, not copied: copying would take as long as all other passes
  // together.
  std::string device = OnlyDevice(*context.graph);
  if (!device.empty()) {
    RETURN_IF_ERROR(FindLoopFrames(*context.graph).status());
    context.partitions.push_back({std::move(device), std::move(*context.graph)});
    return OkStatus();
  }
  ASSIGN_OR_RETURN(context.partitions,
                   PartitionGraph(*context.graph, context.devices, context.urgency));
  return OkStatus();
}

}  // namespace penstock
