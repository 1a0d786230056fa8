// SPDX-License-Identifier: Apache-2.0
//
// Reports what a step waits for in one executor: each waiting node with its tensor or resource,
// and the nodes that would fill or empty a resource. With these nodes, a wait in another part can
// be traced to the node that could end it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/graph/graph.h"
#include "core/runtime/step_activity.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Returns the resource that `node` uses. Its name is the one in the node that makes its handle.
// Returns nullopt if `node` uses no resource, or if the graph does not tell which one.
std::optional<wire::ResourceName> ResourceOf(const Node& node, const std::string& device);

// Adds the activity of one step in an executor that runs `graph` on `device`: its waits, its loops,
// and its nodes that use queues or locks. `now_ns` is by the same clock as the activity.
void AddActivity(const Graph& graph, const std::string& device, const StepActivity& activity,
                 int64_t now_ns, wire::PartReport* part);

}  // namespace penstock
