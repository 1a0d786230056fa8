// SPDX-License-Identifier: Apache-2.0
//
// Place: chooses the device of every node. Among the devices that the constraints allow, it chooses
// those with which a simulated step ends early (search.h). TensorFlow's white paper, 3.2.1, chooses
// for each node the device on which the node would end soonest, including transfers.
//
// Rules:
// (1) A node may run on the devices that match its requested device and have a kernel for it. A
//     node that names no job may run only on the client's task, as clients expect; with `any_task`,
//     on every task.
// (2) Nodes that share state are placed together: `_class: loc:@other`, and users of a ref edge
//     or of a resource handle with the owner.
// (3) A group that holds state gets its device in `state_devices` or, if it has none there, the
//     first device that it may use, which need not be the fastest: the device of a variable must
//     depend neither on the other nodes of a step nor on measurements. PlaceState chooses
//     `state_devices` for a whole graph.
// So costs decide only about stateless nodes for which the client has not named a single device.
// They may run on the devices of the client's task, or of the tasks that a constraint like
// "/job:worker" or `any_task` allows. Errors name the nodes and the constraints that contradict
// each other.
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

// Sets assigned_device on every node. `devices` are in order of preference within a task. Reads
// only the options that concern placement. REQUIRES: `costs` has an estimate for every node.
StatusOr<PlacementReport> Place(const std::vector<DeviceInfo>& devices, const CostTable& costs,
                                const CompileOptions& options, Graph* graph);

// A placed step. PredictCluster predicts the speed of other clusters from it.
// CompileOptions::describe receives it.
struct PlacedStep {
  PlacementProblem problem;
  std::vector<int> device;  // by group
};

// Chooses a device, on any task, for each node of `graph` that holds state and may run on several
// devices. Decides as if the whole graph were one step, and only by estimates, so that the same
// graph on the same devices always gets the same result. Nodes in `options.state_devices` keep
// their devices.
StatusOr<DeviceByNode> PlaceState(const Graph& graph, const std::vector<DeviceInfo>& devices,
                                  const CompileOptions& options);

}  // namespace penstock
