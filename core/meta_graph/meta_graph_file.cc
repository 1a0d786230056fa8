// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/meta_graph/meta_graph_proto.h"
#include "core/wire/message_file.h"
#include "proto/tensorflow/meta_graph.pb.h"

namespace penstock {

namespace {

using Tags = std::vector<std::string>;

StatusOr<std::string> SavedModelPath(const std::string& folder, Env& env) {
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"}) {
    const std::string path = StrCat(folder, "/", name);
    if (env.FileExists(path)) return path;
  }
  return NotFound("there is no SavedModel in '", folder, "': no file saved_model.pb");
}

StatusOr<tensorflow::SavedModel> ReadSavedModelProto(const std::string& path, Env& env) {
  ASSIGN_OR_RETURN(const std::string contents, env.ReadFile(path));
  tensorflow::SavedModel proto;
  RETURN_IF_ERROR(ParseMessage(contents, UnknownFields::kIgnored, &proto));
  if (proto.saved_model_schema_version() == 1) return proto;
  return Unimplemented("saved_model_schema_version is ", proto.saved_model_schema_version(),
                       "; this reader knows 1");
}

Tags TagsOf(const tensorflow::MetaGraphDef& def) {
  return {def.meta_info_def().tags().begin(), def.meta_info_def().tags().end()};
}

Tags Sorted(Tags tags) {
  std::sort(tags.begin(), tags.end());
  return tags;
}

StatusOr<MetaGraph> FindGraph(const tensorflow::SavedModel& model, const Tags& tags, Graph* graph) {
  std::vector<std::string> known_tags;
  for (int i = 0; i < model.meta_graphs_size(); ++i) {
    const Tags graph_tags = TagsOf(model.meta_graphs(i));
    if (Sorted(graph_tags) == Sorted(tags)) {
      auto meta = MetaGraphFromProto(model.meta_graphs(i), graph);
      if (meta.ok()) return meta;
      return Annotate(meta.status(), StrCat("meta_graphs[", i, "]"));
    }
    known_tags.push_back(StrCat("'", absl::StrJoin(graph_tags, ","), "'"));
  }
  return NotFound("it has no graph with tags '", absl::StrJoin(tags, ","),
                  "'; those it has: ", absl::StrJoin(known_tags, ", "));
}

}  // namespace

StatusOr<MetaGraph> ReadMetaGraphFile(Env& env, const std::string& path, Graph* graph) {
  const auto read = [&]() -> StatusOr<MetaGraph> {
    ASSIGN_OR_RETURN(const std::string contents, env.ReadFile(path));
    tensorflow::MetaGraphDef def;
    RETURN_IF_ERROR(ParseMessage(contents, UnknownFields::kIgnored, &def));
    return MetaGraphFromProto(def, graph);
  };
  auto meta = read();
  if (meta.ok()) return meta;
  return Annotate(meta.status(), StrCat("'", path, "'"));
}

StatusOr<std::vector<std::vector<std::string>>> ListSavedModel(Env& env,
                                                               const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string path, SavedModelPath(folder, env));
  const auto model = ReadSavedModelProto(path, env);
  if (!model.ok()) return Annotate(model.status(), StrCat("'", path, "'"));
  std::vector<Tags> all;
  for (const tensorflow::MetaGraphDef& def : model->meta_graphs()) all.push_back(TagsOf(def));
  return all;
}

StatusOr<MetaGraph> ReadSavedModel(Env& env, const std::string& folder,
                                   const std::vector<std::string>& tags, Graph* graph) {
  ASSIGN_OR_RETURN(const std::string path, SavedModelPath(folder, env));
  const auto read = [&]() -> StatusOr<MetaGraph> {
    ASSIGN_OR_RETURN(const tensorflow::SavedModel model, ReadSavedModelProto(path, env));
    return FindGraph(model, tags, graph);
  };
  auto meta = read();
  if (meta.ok()) return meta;
  return Annotate(meta.status(), StrCat("'", path, "'"));
}

}  // namespace penstock
