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
// (2) Nodes that share state are placed together: `_class: loc:@other`, users of a ref edge
//     or of a resource handle with its owner.
// (3) Groups that hold state go where `state_devices` says, else to the first of their devices, not
//     to the quickest: where a variable lives must depend neither on what else a step computes nor
//     on what was measured. PlaceState chooses for a whole graph.
// So costs decide only about stateless nodes that the client left open: on which devices of its own
// task, or of the tasks that a constraint like "/job:worker" or `any_task` allows.
// Errors name the nodes and the constraints that contradict each other.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/pass/compile_options.h"
#include "core/compiler/pass/compile_report.h"
#include "core/compiler/pass/cost_table.h"
#include "core/compiler/placement/problem.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"

namespace penstock {

// Sets assigned_device on every node. `devices` in order of preference within a task. Of the
// options those count that concern placement. REQUIRES estimates for every node in `costs`.
StatusOr<PlacementReport> Place(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                                const CompileOptions& options, Graph* graph);

// A placed step as predictions see it: CompileOptions::describe.
struct PlacedStep {
  PlacementProblem problem;
  std::vector<int> device;  // by group
};

// Places the nodes of `graph` that hold state and leave a choice, on any task. Decides for the
// whole graph as if it were one step, by estimates alone, so that the same graph on the same
// devices always gets the same answer. Nodes in `options.state_devices` stay where that says.
StatusOr<DeviceByNode> PlaceState(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                  const CompileOptions& options);

}  // namespace penstock
