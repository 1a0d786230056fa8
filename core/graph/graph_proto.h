// SPDX-License-Identifier: Apache-2.0
//
// Imports and exports GraphDefs. The messages are only forward-declared, so that files that include
// this header need not compile protobuf's.
//
// Import checks everything, because the bytes are not trusted: unknown op, missing or wrong
// attribute, type mismatch, dangling input, duplicate name, cycle; errors name the node. Nodes may
// come in any order; inputs may name nodes that the graph already has (Extend); attributes that an
// op does not declare are kept if this version can read them; defaults are filled in. Calls of the
// library's functions are replaced by their bodies (core/functions). A failed import does not
// change the graph.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/graph/graph.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace penstock {

struct ImportLimits {
  int64_t nodes_max = 1'000'000;                // the number of nodes of one import
  int64_t tensor_bytes_max = int64_t{1} << 34;  // the bytes of all constants together, in memory
};
// Adds the nodes of `def` to `graph`. ResourceExhausted if `def` exceeds `limits`, or needs more
// memory than the task has.
Status ImportGraph(const tensorflow::GraphDef& def, Graph* graph, const ImportLimits& limits = {});
// Exports the nodes with ids from `first_id` on. The device in a NodeDef is the node's assigned
// device, or the requested one if none is assigned.
void ExportGraph(const Graph& graph, tensorflow::GraphDef* def, int first_id = 0);

// Reads a file with a GraphDef, in binary or text form or in pieces; recognises the form by the
// contents.
StatusOr<Graph> ReadGraphFile(Env& env, const std::string& path, const Registry& registry);
// Writes text if the path ends in ".pbtxt", else binary. A graph above 2 GiB is written in pieces
// (piece_file.h), which other programs cannot read. Equal graphs give equal files.
// ResourceExhausted if a text file would be too large, or if more than 2 GiB are left without the
// large constants of numbers.
Status WriteGraphFile(Env& env, const Graph& graph, const std::string& path);

}  // namespace penstock
