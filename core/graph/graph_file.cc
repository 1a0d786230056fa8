// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/match.h"
#include "core/graph/graph_proto.h"
#include "core/wire/deterministic_bytes.h"
#include "core/wire/message_file.h"
#include "google/protobuf/text_format.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

namespace {

StatusOr<std::string> Serialize(const tensorflow::GraphDef& def, bool text) {
  std::string contents;
  if (text) {
    if (google::protobuf::TextFormat::PrintToString(def, &contents)) return contents;
    return Internal("cannot be printed");
  }
  if (def.ByteSizeLong() > INT32_MAX) {
    return ResourceExhausted("takes ", def.ByteSizeLong(), " bytes, a message holds 2 GiB at most");
  }
  return DeterministicBytes(def);
}

}  // namespace

StatusOr<Graph> ReadGraphFile(Env& env, const std::string& path, const Registry& registry) {
  ASSIGN_OR_RETURN(const std::string contents, env.ReadFile(path));
  tensorflow::GraphDef def;
  Graph graph(registry);
  RETURN_IF_ERROR(
      Annotate(ParseMessage(contents, UnknownFields::kRefused, &def), StrCat("'", path, "'")));
  RETURN_IF_ERROR(Annotate(ImportGraph(def, &graph), StrCat("'", path, "'")));
  return graph;
}

Status WriteGraphFile(Env& env, const Graph& graph, const std::string& path) {
  tensorflow::GraphDef def;
  ExportGraph(graph, &def);
  const StatusOr<std::string> contents = Serialize(def, absl::EndsWith(path, ".pbtxt"));
  if (!contents.ok()) return Annotate(contents.status(), StrCat("the graph for '", path, "'"));
  return env.WriteFileAtomically(path, *contents);
}

}  // namespace penstock
