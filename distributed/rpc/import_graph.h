// SPDX-License-Identifier: Apache-2.0
//
// ImportForTask: ImportGraph on a task of a cluster, whose errors say what to do if the task lacks
// an op that others have.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace penstock {

// As ImportGraph(def, graph). If an op is unknown, the error also names the task, and the flag that
// loads libraries of ops.
Status ImportForTask(const tensorflow::GraphDef& def, const std::string& task, Graph* graph);

}  // namespace penstock
