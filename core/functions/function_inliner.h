// SPDX-License-Identifier: Apache-2.0
//
// InlineFunctions: replaces the calls of a GraphDef's own functions by their bodies, so that a
// graph consists of ops only. It replaces PartitionedCall, StatefulPartitionedCall, RemoteCall,
// SymbolicGradient and calls by a function's name. If, Case, For and While (also their stateless
// forms) become Switch, Merge and the nodes of a loop.
//
// The node of a call becomes an IdentityN of the call's results and keeps its name, so that clients
// can still fetch it, feed it and wait for it. The results of a conditional are independent
// (core/op/independent_results.h): a step runs only the nodes of a branch that it needs. Nodes of a
// body are named CALL/NODE. InvalidArgument and Unimplemented errors name the call;
// ResourceExhausted if there are too many bodies or they are nested too deeply.
#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace penstock {

class Registry;

// Returns whether InlineFunctions would change a node: one that calls a function, or that names one
// in an attribute.
bool CallsFunctions(const tensorflow::GraphDef& graph);
// Writes the resulting nodes to `out`, without a library. ResourceExhausted if there would be more
// than `nodes_max` nodes, or more than about `bytes_max` serialized bytes. (Nesting makes names
// long: the name of a node contains the names of all calls around it.)
Status InlineFunctions(const tensorflow::GraphDef& graph, const Registry& registry,
                       int64_t nodes_max, int64_t bytes_max, tensorflow::GraphDef* out);

}  // namespace penstock
