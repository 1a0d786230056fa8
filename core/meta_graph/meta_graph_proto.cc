// SPDX-License-Identifier: Apache-2.0
#include "core/meta_graph/meta_graph_proto.h"

#include <algorithm>

#include "core/graph/graph_proto.h"
#include "core/wire/attr_proto.h"
#include "proto/tensorflow/meta_graph.pb.h"

namespace penstock {

namespace {

// Returns OK if `name` is a tensor of the graph, "x" or "x:0".
Status CheckTensor(const Graph& graph, const std::string& name) {
  ASSIGN_OR_RETURN(const TensorName tensor, TensorName::Parse(name));
  const Node* node = graph.FindNode(tensor.node);
  if (node == nullptr) return InvalidArgument("the graph has no node '", tensor.node, "'");
  if (!tensor.control && tensor.index < node->num_outputs()) return OkStatus();
  return InvalidArgument("node '", tensor.node, "' has ", node->num_outputs(),
                         " outputs, none is '", name, "'");
}

Status CheckNode(const Graph& graph, const std::string& name) {
  if (graph.FindNode(name) != nullptr) return OkStatus();
  return InvalidArgument("the graph has no node '", name, "'");
}

StatusOr<TensorInfo> InfoFromProto(const Graph& graph, const tensorflow::TensorInfo& proto) {
  TensorInfo info;
  switch (proto.encoding_case()) {
    case tensorflow::TensorInfo::kName:
      info.name = proto.name();
      break;
    case tensorflow::TensorInfo::kCooSparse:
      info.name = proto.coo_sparse().values_tensor_name();
      info.indices = proto.coo_sparse().indices_tensor_name();
      info.dense_shape = proto.coo_sparse().dense_shape_tensor_name();
      RETURN_IF_ERROR(Annotate(CheckTensor(graph, info.indices), "indices_tensor_name"));
      RETURN_IF_ERROR(Annotate(CheckTensor(graph, info.dense_shape), "dense_shape_tensor_name"));
      break;
    default:
      return Unimplemented("it has neither name nor coo_sparse");
  }
  RETURN_IF_ERROR(Annotate(CheckTensor(graph, info.name), "name"));
  auto dtype = DTypeFromNumber(proto.dtype());
  if (!dtype.ok()) return Annotate(dtype.status(), "dtype");
  auto shape = ShapeFromProto(proto.tensor_shape());
  if (!shape.ok()) return Annotate(shape.status(), "tensor_shape");
  info.dtype = *dtype;
  info.shape = *std::move(shape);
  return info;
}

Status ReadInfos(const Graph& graph, string_view field,
                 const google::protobuf::Map<std::string, tensorflow::TensorInfo>& protos,
                 std::map<std::string, TensorInfo>* infos) {
  for (const auto& [key, proto] : protos) {
    auto info = InfoFromProto(graph, proto);
    if (!info.ok()) return Annotate(info.status(), StrCat(field, "['", key, "']"));
    infos->emplace(key, *std::move(info));
  }
  return OkStatus();
}

// The signature that names the node which a loader must run once. Its output is the name of a node
// instead of a tensor.
constexpr char kInitSignature[] = "__saved_model_init_op";

Status ReadSignature(const Graph& graph, const std::string& key,
                     const tensorflow::SignatureDef& proto, MetaGraph* meta) {
  Signature& signature = meta->signatures[key];
  signature.method = proto.method_name();
  if (key != kInitSignature) {
    RETURN_IF_ERROR(ReadInfos(graph, "inputs", proto.inputs(), &signature.inputs));
    return ReadInfos(graph, "outputs", proto.outputs(), &signature.outputs);
  }
  for (const auto& [name, info] : proto.outputs()) {
    RETURN_IF_ERROR(Annotate(CheckNode(graph, info.name()), StrCat("outputs['", name, "'].name")));
    signature.outputs[name].name = info.name();
  }
  return OkStatus();
}

Status ReadSaver(const Graph& graph, const tensorflow::SaverDef& proto, MetaGraph* meta) {
  SaverNames& saver = meta->saver;
  saver = {.filename_tensor = proto.filename_tensor_name(),
           .save_tensor = proto.save_tensor_name(),
           .restore_op = proto.restore_op_name(),
           .max_to_keep = proto.max_to_keep(),
           .sharded = proto.sharded(),
           .v1_format = proto.version() != tensorflow::SaverDef::V2};
  RETURN_IF_ERROR(Annotate(CheckTensor(graph, saver.filename_tensor), "filename_tensor_name"));
  RETURN_IF_ERROR(Annotate(CheckTensor(graph, saver.save_tensor), "save_tensor_name"));
  return Annotate(CheckNode(graph, saver.restore_op), "restore_op_name");
}

StatusOr<Collection> CollectionFromProto(const tensorflow::CollectionDef& proto) {
  switch (proto.kind_case()) {
    case tensorflow::CollectionDef::kNodeList:
      return Collection{
          Collection::Nodes{{proto.node_list().value().begin(), proto.node_list().value().end()}}};
    case tensorflow::CollectionDef::kBytesList:
      return Collection{Collection::Bytes{
          {proto.bytes_list().value().begin(), proto.bytes_list().value().end()}}};
    case tensorflow::CollectionDef::kInt64List:
      return Collection{std::vector<int64_t>(proto.int64_list().value().begin(),
                                             proto.int64_list().value().end())};
    case tensorflow::CollectionDef::kFloatList:
      return Collection{
          std::vector<float>(proto.float_list().value().begin(), proto.float_list().value().end())};
    case tensorflow::CollectionDef::kAnyList: {
      Collection::Bytes bytes;
      for (const auto& any : proto.any_list().value()) bytes.values.push_back(any.value());
      return Collection{std::move(bytes)};
    }
    default:
      return Collection{};  // an empty collection has no kind
  }
}

// In files written before asset_file_def existed, assets are in a collection.
Status ReadAssets(const Graph& graph, const tensorflow::MetaGraphDef& def, MetaGraph* meta) {
  std::vector<tensorflow::AssetFileDef> protos(def.asset_file_def().begin(),
                                               def.asset_file_def().end());
  const auto listed = def.collection_def().find("saved_model_assets");
  if (protos.empty() && listed != def.collection_def().end()) {
    for (const auto& any : listed->second.any_list().value()) {
      if (!protos.emplace_back().ParseFromString(any.value())) {
        return InvalidArgument(
            "collection_def['saved_model_assets'] holds something that is no AssetFileDef");
      }
    }
  }
  for (const tensorflow::AssetFileDef& proto : protos) {
    const std::string& tensor = proto.tensor_info().name();
    RETURN_IF_ERROR(Annotate(CheckTensor(graph, tensor), "asset_file_def.tensor_info.name"));
    const std::string& file = proto.filename();
    if (file.empty() || file[0] == '/' ||
        StrCat("/", file, "/").find("/../") != std::string::npos) {
      return InvalidArgument("asset_file_def.filename '", file, "' leads out of the folder");
    }
    // TensorFlow lists a file once for each graph of the SavedModel. Keep only one entry.
    const auto known = std::find_if(meta->assets.begin(), meta->assets.end(),
                                    [&](const Asset& asset) { return asset.tensor == tensor; });
    if (known == meta->assets.end()) {
      meta->assets.push_back({tensor, file});
    } else if (known->filename != file) {
      return InvalidArgument("asset_file_def: '", tensor, "' names two files, '", known->filename,
                             "' and '", file, "'");
    }
  }
  return OkStatus();
}

// Reads all fields except the graph, and checks them against the graph.
StatusOr<MetaGraph> ReadRest(const tensorflow::MetaGraphDef& def, const Graph& graph) {
  MetaGraph meta;
  meta.tags.assign(def.meta_info_def().tags().begin(), def.meta_info_def().tags().end());
  meta.tensorflow_version = def.meta_info_def().tensorflow_version();
  if (!def.saver_def().restore_op_name().empty()) {
    RETURN_IF_ERROR(Annotate(ReadSaver(graph, def.saver_def(), &meta), "saver_def"));
  }
  for (const auto& [key, proto] : def.collection_def()) {
    ASSIGN_OR_RETURN(meta.collections[key], CollectionFromProto(proto));
  }
  for (const auto& [key, proto] : def.signature_def()) {
    RETURN_IF_ERROR(
        Annotate(ReadSignature(graph, key, proto, &meta), StrCat("signature_def['", key, "']")));
  }
  RETURN_IF_ERROR(ReadAssets(graph, def, &meta));
  return meta;
}

}  // namespace

StatusOr<MetaGraph> MetaGraphFromProto(const tensorflow::MetaGraphDef& def, Graph* graph) {
  const int first_id = graph->max_id();
  RETURN_IF_ERROR(Annotate(ImportGraph(def.graph_def(), graph), "graph_def"));
  auto meta = ReadRest(def, *graph);
  if (!meta.ok()) graph->RemoveNodesFrom(first_id);
  return meta;
}

int64_t Collection::size() const {
  return std::visit(
      []<class T>(const T& list) -> int64_t {
        if constexpr (std::is_same_v<T, Nodes>) {
          return static_cast<int64_t>(list.names.size());
        } else if constexpr (std::is_same_v<T, Bytes>) {
          return static_cast<int64_t>(list.values.size());
        } else {
          return static_cast<int64_t>(list.size());
        }
      },
      values);
}

StatusOr<std::vector<SavedVariable>> MetaGraph::Variables(const std::string& collection,
                                                          const Graph& graph) const {
  const auto found = collections.find(collection);
  if (found == collections.end()) return NotFound("there is no collection '", collection, "'");
  const auto* list = std::get_if<Collection::Bytes>(&found->second.values);
  if (list == nullptr) {
    return InvalidArgument("collection_def['", collection, "'] does not hold variables");
  }
  std::vector<SavedVariable> variables;
  for (const std::string& bytes : list->values) {
    tensorflow::VariableDef proto;
    if (!proto.ParseFromString(bytes)) {
      return InvalidArgument("collection_def['", collection,
                             "'] holds something that is no VariableDef");
    }
    const auto check = [&]() -> Status {
      RETURN_IF_ERROR(Annotate(CheckTensor(graph, proto.variable_name()), "variable_name"));
      RETURN_IF_ERROR(Annotate(CheckNode(graph, proto.initializer_name()), "initializer_name"));
      return Annotate(CheckTensor(graph, proto.snapshot_name()), "snapshot_name");
    };
    RETURN_IF_ERROR(Annotate(
        check(), StrCat("collection_def['", collection, "'], '", proto.variable_name(), "'")));
    variables.push_back({.name = proto.variable_name(),
                         .initializer = proto.initializer_name(),
                         .snapshot = proto.snapshot_name(),
                         .is_resource = proto.is_resource(),
                         .trainable = proto.trainable(),
                         .whole_name = proto.save_slice_info_def().full_name()});
  }
  return variables;
}

}  // namespace penstock
