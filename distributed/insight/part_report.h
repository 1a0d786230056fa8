// SPDX-License-Identifier: Apache-2.0
//
// Reports what one executor's part of a step waits for, as messages for an operator: each waiting
// node with its tensor or resource; and the nodes that would fill or empty a resource, so that a
// wait elsewhere can be traced to the node that could end it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/graph/graph.h"
#include "core/runtime/step_activity.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// The resource that `node` works on, as its handle's maker names it; nullopt if it works on none,
// or the graph does not tell.
std::optional<wire::ResourceName> ResourceOf(const Node& node, const std::string& device);

// Adds what one step does in an executor that runs `graph` on `device`. `now_ns`: by the clock of
// the activity.
void AddActivity(const Graph& graph, const std::string& device, const StepActivity& activity,
                 int64_t now_ns, wire::PartReport* part);

}  // namespace penstock
