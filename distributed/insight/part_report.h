// SPDX-License-Identifier: Apache-2.0
//
// What a step waits for in one executor, in an operator's words: each node that waits, and for
// which tensor or resource; and which nodes of the step would fill or empty a resource, so that it
// can be told who could end somebody else's wait.
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
