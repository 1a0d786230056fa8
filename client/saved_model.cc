// SPDX-License-Identifier: Apache-2.0
#include "client/saved_model.h"

#include <utility>

namespace penstock::client {
namespace {

Status CheckHasSaver(const SaverNames& saver) {
  if (!saver.restore_op.empty()) return OkStatus();
  return FailedPrecondition("the graph was saved without a saver: saver_def names no nodes");
}

// Returns the name of the op that a loader must run once; "" if there is none. Versions of
// TensorFlow have named the op differently; this function tries all names.
std::string InitOp(const MetaGraph& meta) {
  const auto signature = meta.signatures.find("__saved_model_init_op");
  if (signature != meta.signatures.end() && !signature->second.outputs.empty()) {
    return signature->second.outputs.begin()->second.name;
  }
  for (const char* name : {"saved_model_main_op", "legacy_init_op"}) {
    const auto found = meta.collections.find(name);
    if (found == meta.collections.end()) continue;
    const auto* nodes = std::get_if<Collection::Nodes>(&found->second.values);
    if (nodes != nullptr && !nodes->names.empty()) return nodes->names[0];
  }
  return "";
}

Status CheckInput(const std::string& name, const TensorInfo& info, const Tensor& value) {
  if (!info.indices.empty()) {
    return Unimplemented("input '", name, "' is sparse: feed its tensors through the session");
  }
  if (value.dtype() == info.dtype && info.shape.Compatible(value.shape())) return OkStatus();
  return InvalidArgument("input '", name, "' must be ", Name(info.dtype), info.shape.ToString(),
                         ", is ", Name(value.dtype()), value.shape().ToString());
}

StatusOr<std::vector<Feed>> Feeds(const Signature& signature,
                                  const std::map<std::string, Tensor>& inputs) {
  for (const auto& [name, value] : inputs) {
    if (!signature.inputs.contains(name)) return InvalidArgument("it has no input '", name, "'");
  }
  std::vector<Feed> feeds;
  for (const auto& [name, info] : signature.inputs) {
    const auto input = inputs.find(name);
    if (input == inputs.end()) return InvalidArgument("input '", name, "' is missing");
    RETURN_IF_ERROR(CheckInput(name, info, input->second));
    feeds.push_back({info.name, input->second});
  }
  return feeds;
}

}  // namespace

Status RestoreVariables(Session& session, const SaverNames& saver, const std::string& path) {
  RETURN_IF_ERROR(CheckHasSaver(saver));
  return session.Execute(saver.restore_op, {{saver.filename_tensor, Tensor::Scalar(path)}});
}

StatusOr<std::string> SaveVariables(Session& session, const SaverNames& saver,
                                    const std::string& path) {
  RETURN_IF_ERROR(CheckHasSaver(saver));
  ASSIGN_OR_RETURN(
      const Tensor saved,
      session.Fetch(saver.save_tensor, {{saver.filename_tensor, Tensor::Scalar(path)}}));
  if (saved.dtype() != DType::kString || saved.num_elements() != 1) {
    return InvalidArgument("saver_def.save_tensor_name '", saver.save_tensor, "' is ",
                           Name(saved.dtype()), saved.shape().ToString(), ", not a path");
  }
  return saved.flat<std::string>()[0];
}

StatusOr<std::unique_ptr<SavedModel>> SavedModel::Load(const std::string& folder,
                                                       const std::vector<std::string>& tags,
                                                       const Options& options) {
  std::unique_ptr<SavedModel> model(new SavedModel());
  ASSIGN_OR_RETURN(model->meta_,
                   ReadSavedModel(*options.env, folder, tags, &model->program_.mutable_graph()));
  ASSIGN_OR_RETURN(model->session_, Session::New(model->program_, options.target, options.session));
  RETURN_IF_ERROR(
      Annotate(model->Initialize(folder, *options.env), StrCat("SavedModel '", folder, "'")));
  return model;
}

Status SavedModel::Initialize(const std::string& folder, Env& env) {
  // A model without variables has no folder `variables`, although it may have a saver.
  const std::string variables = StrCat(folder, "/variables/variables");
  if (env.FileExists(variables + ".index")) {
    RETURN_IF_ERROR(Annotate(RestoreVariables(*session_, meta_.saver, variables), "variables"));
  }
  const std::string init = InitOp(meta_);
  if (init.empty()) return OkStatus();
  std::vector<Feed> feeds;
  for (const Asset& asset : meta_.assets) {
    feeds.push_back({asset.tensor, Tensor::Scalar(StrCat(folder, "/assets/", asset.filename))});
  }
  return Annotate(session_->Execute(init, feeds), "its initialisation");
}

StatusOr<std::map<std::string, Tensor>> SavedModel::Call(
    const std::string& signature, const std::map<std::string, Tensor>& inputs) {
  const auto found = meta_.signatures.find(signature);
  if (found == meta_.signatures.end()) {
    return NotFound("the model has no signature '", signature, "'");
  }
  const auto feeds = Feeds(found->second, inputs);
  if (!feeds.ok()) return Annotate(feeds.status(), StrCat("signature '", signature, "'"));
  std::vector<TensorRef> fetches;
  for (const auto& [name, info] : found->second.outputs) fetches.emplace_back(info.name);
  ASSIGN_OR_RETURN(std::vector<Tensor> values, session_->Run(*feeds, fetches));
  std::map<std::string, Tensor> outputs;
  for (const auto& [name, info] : found->second.outputs) {
    outputs.emplace(name, std::move(values[outputs.size()]));
  }
  return outputs;
}

}  // namespace penstock::client
