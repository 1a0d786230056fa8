// SPDX-License-Identifier: Apache-2.0
//
// Orders in which the nodes of a placed step may run, on all devices together: the order that the
// executors will probably choose, and an order that needs little memory. In both, each node comes
// after all nodes for which it waits, except over the back edges of loops.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/memory/memory_model.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"

namespace penstock {

// Returns the order that the executors will probably choose. An executor begins with the nodes
// without inputs: in the order of the graph or, if `urgency` (by node id) is not empty, the most
// urgent first, as the partitioner sorts them. After that it always runs the node that became ready
// last, but cheap nodes before expensive ones (core/runtime/node_runner.cc). With one thread it
// keeps exactly this order. `client_task` is the prefix of the device names of the client's task.
// The other tasks run at the same time; their nodes are assumed to run earlier.
StatusOr<std::vector<Node*>> ExecutorOrder(const Graph& graph, const CostTable& costs,
                                           const std::string& client_task,
                                           const std::vector<double>& urgency = {});

// Returns the best of `known` and several greedy orders: the one with the least Excess(limit) and,
// among equal ones, the lowest peak. In a greedy order, the next node is a ready node that frees
// memory or takes the least memory. (Finding the lowest peak is NP-hard.) ordered[d] is true if
// control edges can make the nodes of device d of the model keep an order; nodes of other devices
// run as soon as they are ready.
std::vector<Node*> LowPeakOrder(const MemoryModel& model, const Graph& graph,
                                const std::vector<Node*>& known, const std::vector<bool>& ordered,
                                double limit);

}  // namespace penstock
