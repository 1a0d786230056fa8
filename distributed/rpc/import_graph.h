// SPDX-License-Identifier: Apache-2.0
//
// ImportForTask: calls ImportGraph in a task of a cluster. Its errors say what to do if the task
// lacks an op that other tasks have.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/graph/graph_pieces.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace penstock {

// Does the same as ImportGraph(def, graph). If an op is unknown, the error also names the task, and
// the flag that loads libraries of ops.
Status ImportForTask(const tensorflow::GraphDef& def, const std::string& task, Graph* graph);
// Does the same with constants->Import(def, graph), if `constants` is not null.
Status ImportForTask(tensorflow::GraphDef* def, ConstantPieces* constants, const std::string& task,
                     Graph* graph);

}  // namespace penstock
