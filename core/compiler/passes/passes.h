// SPDX-License-Identifier: Apache-2.0
//
// The passes of Compile that change a graph before it is placed. One file each; compile.cc lists
// them. Errors name the node. A pass leaves the graph valid.
#pragma once

#include "core/base/status.h"
#include "core/compiler/compile.h"
#include "core/graph/graph.h"

namespace penstock {

// A new graph of what feeds, fetches and targets need (white paper 4.2), with _Feed nodes in the
// place of fed tensors and a _Fetch node for each fetch, both pinned to the client's device. What
// is inside a loop can be neither fed nor fetched nor a target.
StatusOr<Graph> Prune(const Graph& graph, const CompileOptions& options);

// Computes at compile time what depends on constants alone, and the shapes that inference knows.
// Nodes that are stateful, too large, or fail when tried stay as they are; so does what may not run
// at all, or many times: a constant that waits for something, and the nodes of control flow.
// Kernels run on this thread and `threads`.
Status FoldConstants(Graph* graph, Env& env, Scheduler& threads);

// Merges nodes that compute the same from the same inputs under the same constraints (Click's
// global value numbering over one topological walk). Stateful nodes are never merged.
Status EliminateCommonSubexpressions(Graph* graph);

// Drops what nothing needs any more after folding and merging: stateless nodes without consumers
// that no one asked for. `targets` are kept.
Status RemoveDeadNodes(Graph* graph, const std::vector<std::string>& targets);

}  // namespace penstock
