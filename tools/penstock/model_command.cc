// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "core/meta_graph/meta_graph.h"
#include "tools/penstock/commands.h"
#include "tools/penstock/load_flag.h"

namespace penstock {
namespace {

struct ModelOptions {
  std::string path, tags;
};

void PrintTensors(const char* what, const std::map<std::string, TensorInfo>& tensors) {
  for (const auto& [key, info] : tensors) {
    std::string names = info.name;
    if (!info.indices.empty()) {
      names = StrCat("sparse: ", info.indices, ", ", info.name, ", ", info.dense_shape);
    }
    const std::string type =
        info.dtype == DType::kInvalid ? "" : Name(info.dtype) + info.shape.ToString();
    std::printf("    %-7s %-16s %-18s %s\n", what, key.c_str(), type.c_str(), names.c_str());
  }
}

void Print(const MetaGraph& meta, const Graph& graph) {
  std::printf("%d nodes; written by TensorFlow %s\n", graph.num_nodes(),
              meta.tensorflow_version.c_str());
  if (!meta.saver.restore_op.empty()) {
    std::printf("saver: feed %s; save by %s, restore by %s (%s%s)\n",
                meta.saver.filename_tensor.c_str(), meta.saver.save_tensor.c_str(),
                meta.saver.restore_op.c_str(), meta.saver.v1_format ? "V1" : "V2",
                meta.saver.sharded ? ", sharded" : "");
  }
  for (const auto& [name, collection] : meta.collections) {
    std::printf("collection %s: %lld\n", name.c_str(), static_cast<long long>(collection.size()));
    const auto variables = meta.Variables(name, graph);
    if (!variables.ok()) continue;  // skips a collection of another kind
    for (const SavedVariable& variable : *variables) {
      std::printf("    %s\n", variable.name.c_str());
    }
  }
  for (const Asset& asset : meta.assets) {
    std::printf("asset %s: %s\n", asset.filename.c_str(), asset.tensor.c_str());
  }
  for (const auto& [name, signature] : meta.signatures) {
    std::printf("signature %s%s%s\n", name.c_str(), signature.method.empty() ? "" : ", ",
                signature.method.c_str());
    PrintTensors("input", signature.inputs);
    PrintTensors("output", signature.outputs);
  }
}

Status RunModelCommand(const ModelOptions& options) {
  Env& env = Env::Real();
  Graph graph(Registry::Global());
  const bool folder = env.ListDirectory(options.path).ok();
  if (!folder) {
    ASSIGN_OR_RETURN(const MetaGraph meta, ReadMetaGraphFile(env, options.path, &graph));
    Print(meta, graph);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto all, ListSavedModel(env, options.path));
  std::vector<std::string> tags = absl::StrSplit(options.tags, ',', absl::SkipEmpty());
  if (all.size() == 1 && tags.empty()) tags = all[0];
  if (all.size() > 1 && tags.empty()) {
    std::printf("%zu graphs; --tags chooses one:\n", all.size());
    for (const auto& own : all) std::printf("    %s\n", absl::StrJoin(own, ",").c_str());
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const MetaGraph meta, ReadSavedModel(env, options.path, tags, &graph));
  Print(meta, graph);
  return OkStatus();
}

}  // namespace

void AddModelCommand(CLI::App& app, int* exit_code) {
  CLI::App* model = app.add_subcommand("model", "Print the contents of a .meta file or SavedModel");
  model->footer(
      "  penstock model model.ckpt-100.meta          its saver, collections and signatures\n"
      "  penstock model /models/1                    the same of a SavedModel, or its graphs' "
      "tags\n"
      "  penstock model /models/1 --tags=serve       one of several graphs\n");
  auto options = std::make_shared<ModelOptions>();
  model->add_option("path", options->path, "A .meta file, binary or text, or a SavedModel's folder")
      ->required();
  model->add_option("--tags", options->tags, "The tags of the SavedModel's graph, by commas");
  AddLoadFlag(*model);
  model->callback([options, exit_code] { *exit_code = ExitCodeOf(RunModelCommand(*options)); });
}

}  // namespace penstock
