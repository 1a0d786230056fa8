// SPDX-License-Identifier: Apache-2.0
//
// Place: chooses the device of every node: constraints first, then such that a simulated step ends
// early (white paper 3.2.1: for each node the device where it would end soonest, transfers
// included; see search.h).
//
// Rules:
// (1) A node's devices are those that its requested device matches and that have a kernel for it. A
//     node that names no job may run on the client's task only, which is what clients expect;
//     with `any_task` on every task.
// (2) Nodes that share state are placed together: `_class: loc:@other`, users of a reference edge
//     or of a resource handle with its owner.
// (3) Groups that hold state go to the first of their devices, not to the quickest: where a
//     variable lives must depend neither on what else a step computes nor on what was measured.
// So costs decide only about stateless nodes that the client left open: on which devices of its own
// task, or of the tasks that a constraint like "/job:worker" or `any_task` allows.
// Errors name the nodes and the constraints that contradict each other.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/pass/compile_report.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

struct PlaceOptions {
  bool allow_soft_placement = false;
  bool any_task = false;
  DeviceName client_device;
  bool predict = false;  // the report has the predicted step: runs and transfers
};

// Sets assigned_device on every node. `devices` in order of preference within a task. REQUIRES
// estimates for every node in `costs`.
StatusOr<PlacementReport> Place(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                                const PlaceOptions& options, Graph* graph);

}  // namespace penstock
