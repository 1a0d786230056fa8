// SPDX-License-Identifier: Apache-2.0
//
// Finds causes of a stuck cluster that the waits of running steps do not show: two tasks that the
// network no longer connects, variables that no client initialises, and checkpoints that cannot be
// written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/insight/wait_graph.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Each function returns findings as complete sentences. Waits younger than `patience_ms` are
// ignored.

// Names the pairs of tasks that have both reported, but one of which cannot reach the other.
std::vector<std::string> FindCutPairs(const wire::ClusterReport& cluster, const WaitGraph& graph,
                                      int64_t patience_ms);

// Names the uninitialised variables that sessions wait for, and says whether the chief is running.
std::vector<std::string> FindAwaitedVariables(const wire::ClusterReport& cluster,
                                              int64_t patience_ms);

// Names the checkpoints that could not be written. Returns nothing if no session is left, because
// then no client tries again.
std::vector<std::string> FindFailedSaves(const wire::ClusterReport& cluster);

}  // namespace penstock
