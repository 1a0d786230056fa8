// SPDX-License-Identifier: Apache-2.0
//
// Orders in which the nodes of a placed step run, on all devices together: a guess at the
// executor's own, and one that keeps little memory. Nodes come after all that they wait for, but
// for the back edges of loops.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/compiler/memory/memory_model.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"

namespace penstock {

// The executor begins with the nodes that wait for nothing: in the order of the graph or, if
// `urgency` (by node id) is not empty, the most urgent first, as the partitioner sorts them. Then
// it runs the node that has become ready last, expensive nodes after cheap ones
// (core/runtime/node_runner.cc); with one thread it does just that. Tasks other than the client's,
// `client_task` as a prefix of their devices' names, run beside it and are taken to be quicker.
StatusOr<std::vector<Node*>> ExecutorOrder(const Graph& graph, const CostTable& costs,
                                           const std::string& client_task,
                                           const std::vector<double>& urgency = {});

// The best of several greedy orders, and of `known`: of all nodes that are ready, one that frees
// memory, or takes the least of it, runs next. Finding the least peak is NP-hard. `ordered` says of
// each device of the model whether its nodes can be made to keep an order; those of the others run
// as soon as they are ready.
std::vector<Node*> LowPeakOrder(const MemoryModel& model, const Graph& graph,
                                const std::vector<Node*>& known, const std::vector<bool>& ordered,
                                double limit);

}  // namespace penstock
