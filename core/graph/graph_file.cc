// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "core/graph/graph_pieces.h"
#include "core/graph/graph_proto.h"
#include "core/graph/piece_file.h"
#include "core/wire/deterministic_bytes.h"
#include "core/wire/message_file.h"
#include "google/protobuf/text_format.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

namespace {

StatusOr<std::string> Serialize(const tensorflow::GraphDef& def, bool text) {
  std::string contents;
  if (text) {
    if (!google::protobuf::TextFormat::PrintToString(def, &contents)) {
      return Internal("cannot be printed");
    }
    if (contents.size() <= INT32_MAX) return contents;
    return ResourceExhausted("takes ", contents.size(),
                             " bytes as text, a text file holds 2 GiB at most: only a binary file "
                             "can hold it");
  }
  if (def.ByteSizeLong() > INT32_MAX) {
    return ResourceExhausted("takes ", def.ByteSizeLong(),
                             " bytes without its large constants of numbers, a message holds 2 GiB "
                             "at most");
  }
  return DeterministicBytes(def);
}

Status WritePieces(const Graph& graph, PieceLimits limits, WritableFile& file) {
  limits.whole_bytes_max = 0;
  GraphPieces pieces(graph, limits);
  RETURN_IF_ERROR(WritePieceFileHeader(file));
  tensorflow::GraphDef def;
  while (pieces.Next(&def)) {
    ASSIGN_OR_RETURN(const std::string bytes, Serialize(def, /*text=*/false));
    RETURN_IF_ERROR(WritePiece(bytes, file));
  }
  return OkStatus();
}

Status ReadPieces(PieceFileReader& reader, Graph* graph) {
  ConstantPieces constants(/*bytes_max=*/reader.size());
  std::string bytes;
  while (true) {
    RETURN_IF_ERROR(reader.Read(&bytes));
    tensorflow::GraphDef def;
    if (!def.ParseFromString(bytes)) return DataLoss("a piece is not a GraphDef");
    if (ConstantPieces::IsPiece(def)) {
      RETURN_IF_ERROR(constants.Add(def));
      continue;
    }
    RETURN_IF_ERROR(constants.Import(&def, graph));
    if (reader.at_end()) return OkStatus();
    return DataLoss("bytes follow the graph");
  }
}

}  // namespace

StatusOr<Graph> ReadGraphFile(Env& env, const std::string& path, const Registry& registry) {
  Graph graph(registry);
  const StatusOr<std::unique_ptr<PieceFileReader>> pieces = PieceFileReader::Open(env, path);
  if (pieces.ok() && *pieces != nullptr) {
    RETURN_IF_ERROR(Annotate(ReadPieces(**pieces, &graph), StrCat("'", path, "'")));
    return graph;
  }
  ASSIGN_OR_RETURN(const std::string contents, env.ReadFile(path));
  tensorflow::GraphDef def;
  RETURN_IF_ERROR(
      Annotate(ParseMessage(contents, UnknownFields::kRefused, &def), StrCat("'", path, "'")));
  RETURN_IF_ERROR(Annotate(ImportGraph(def, &graph), StrCat("'", path, "'")));
  return graph;
}

Status WriteGraphFile(Env& env, const Graph& graph, const std::string& path) {
  return WriteGraphFile(env, graph, path, PieceLimits());
}

Status WriteGraphFile(Env& env, const Graph& graph, const std::string& path,
                      const PieceLimits& limits) {
  const auto annotate = [&](const Status& status) {
    return Annotate(status, StrCat("the graph for '", path, "'"));
  };
  GraphPieces whole(graph, limits);
  const bool text = absl::EndsWith(path, ".pbtxt");
  if (!whole.whole() && text) {
    return annotate(ResourceExhausted("has more than ", limits.whole_bytes_max,
                                      " bytes of tensors: only a binary file can hold it"));
  }
  if (whole.whole()) {
    tensorflow::GraphDef def;
    whole.Next(&def);
    if (text || static_cast<int64_t>(def.ByteSizeLong()) <= limits.whole_bytes_max) {
      const StatusOr<std::string> contents = Serialize(def, text);
      if (!contents.ok()) return annotate(contents.status());
      return env.WriteFileAtomically(path, *contents);
    }
  }
  return annotate(env.WriteFileAtomically(
      path, [&](WritableFile& file) { return WritePieces(graph, limits, file); }));
}

}  // namespace penstock
