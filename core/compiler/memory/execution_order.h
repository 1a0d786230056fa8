// SPDX-License-Identifier: Apache-2.0
//
// Orders in which the nodes of a placed step run, on all devices together: the order that the
// executor will probably choose, and an order that needs little memory. Each node comes after all
// nodes that it waits for; the back edges of loops do not count.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/memory/memory_model.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"

namespace penstock {

// Returns the order that the executor will probably choose. The executor begins with the nodes that
// wait for nothing: in the order of the graph or, if `urgency` (by node id) is not empty, the most
// urgent first, as the partitioner sorts them. Then it runs the node that has become ready last,
// expensive nodes after cheap ones (core/runtime/node_runner.cc); with one thread this is exactly
// its order. `client_task` is the prefix of the device names of the client's task. The other tasks
// run at the same time, and are assumed to be quicker.
StatusOr<std::vector<Node*>> ExecutorOrder(const Graph& graph, const CostTable& costs,
                                           const std::string& client_task,
                                           const std::vector<double>& urgency = {});

// Returns the best of several greedy orders and of `known`: the one with the least Excess(limit)
// or, if several have it, the lowest peak. In a greedy order, a ready node that frees memory or
// takes the least memory runs next. Finding the lowest peak is NP-hard. `ordered` tells for each
// device of the model whether its nodes can be made to keep an order; nodes of the other devices
// run as soon as they are ready.
std::vector<Node*> LowPeakOrder(const MemoryModel& model, const Graph& graph,
                                const std::vector<Node*>& known, const std::vector<bool>& ordered,
                                double limit);

}  // namespace penstock
