// SPDX-License-Identifier: Apache-2.0
//
// InlineFunctions: replaces the calls of a GraphDef's own functions by their bodies, so that a
// graph has nothing but ops: PartitionedCall, StatefulPartitionedCall, calls by a function's name,
// and If and While (with their stateless forms), which become Switch, Merge and the nodes of a
// loop.
//
// A call keeps its name: it becomes an IdentityN of its results, so that it can be fetched, fed and
// waited for as before. The results of a conditional are independent (core/op/results_apart.h):
// a step runs of the branch what it needs. Nodes of a body are called CALL/NODE. InvalidArgument
// and Unimplemented errors name the call; ResourceExhausted where the bodies are too many or nested
// too deeply.
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace penstock {

class Registry;

// Whether there is anything to be replaced.
bool CallsFunctions(const tensorflow::GraphDef& graph);
// `out` gets the nodes; no library. It has at most `nodes_max` nodes, which take about `bytes_max`
// at most as messages: the name of a node begins with those of the calls around it.
Status InlineFunctions(const tensorflow::GraphDef& graph, const Registry& registry,
                       int64_t nodes_max, int64_t bytes_max, tensorflow::GraphDef* out);

}  // namespace penstock
