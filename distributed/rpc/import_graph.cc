// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/import_graph.h"

#include <set>

#include "core/graph/graph_proto.h"
#include "core/op/registry.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

bool LacksAnOp(const tensorflow::GraphDef& def, const Registry& registry) {
  std::set<string_view> functions;
  for (const auto& function : def.library().function()) {
    functions.insert(function.signature().name());
  }
  const auto lacks = [&](const auto& nodes) {
    for (const tensorflow::NodeDef& node : nodes) {
      if (registry.FindOp(node.op()) == nullptr && functions.count(node.op()) == 0) return true;
    }
    return false;
  };
  if (lacks(def.node())) return true;
  for (const auto& function : def.library().function()) {
    if (lacks(function.node_def())) return true;
  }
  return false;
}

Status Explain(const Status& status, const tensorflow::GraphDef& def, const std::string& task,
               const Graph& graph) {
  if (status.code() != StatusCode::kNotFound || !LacksAnOp(def, graph.registry())) return status;
  Status explained(status.code(),
                   StrCat(status.message(), "; this is ", task,
                          ": if a library has the op, start that task with --load=LIBRARY "
                          "(docs/custom-ops.md)"));
  status.ForEachPayload(
      [&](string_view type, const absl::Cord& payload) { explained.SetPayload(type, payload); });
  return explained;
}

}  // namespace

Status ImportForTask(const tensorflow::GraphDef& def, const std::string& task, Graph* graph) {
  return Explain(ImportGraph(def, graph), def, task, *graph);
}

Status ImportForTask(tensorflow::GraphDef* def, ConstantPieces* constants, const std::string& task,
                     Graph* graph) {
  if (constants == nullptr) return ImportForTask(*def, task, graph);
  return Explain(constants->Import(def, graph), *def, task, *graph);
}

}  // namespace penstock
