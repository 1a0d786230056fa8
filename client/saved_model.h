// SPDX-License-Identifier: Apache-2.0
//
// Graphs that were saved with their variables: SavedModels, and the ".meta" files of savers.
//
//   auto model = SavedModel::Load("/models/1", {"serve"});
//   auto outputs = (*model)->Call("serving_default", {{"x", x}});
//
// To use a ".meta" file, read it into a program, then use the saver that the file names:
//
//   Program program;
//   auto meta = ReadMetaGraphFile(env, "model.ckpt-100.meta", &program.mutable_graph());
//   auto session = Session::New(program);
//   RestoreVariables(**session, meta->saver, "model.ckpt-100");
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/session.h"
#include "core/base/env.h"
#include "core/meta_graph/meta_graph.h"

namespace penstock::client {

// Restores the saver's variables from the checkpoint `path`. The tasks that hold the variables read
// the files. FailedPrecondition if the graph has no saver.
Status RestoreVariables(Session& session, const SaverNames& saver, const std::string& path);
// Writes the saver's variables to the checkpoint `path` and returns its name. FailedPrecondition if
// the graph has no saver.
StatusOr<std::string> SaveVariables(Session& session, const SaverNames& saver,
                                    const std::string& path);

// A SavedModel: one of its graphs and the variables, in a session of its own. Thread-safe.
class SavedModel {
 public:
  struct Options {
    std::string target = "";  // the session's target; "" is this process
    SessionOptions session = {};
    Env* env = &Env::Real();  // reads the graph; the tasks read variables and assets
  };

  // Loads the graph with these tags (TensorFlow's builders tag a graph for inference "serve"),
  // restores its variables and runs its initialisation op.
  static StatusOr<std::unique_ptr<SavedModel>> Load(const std::string& folder,
                                                    const std::vector<std::string>& tags,
                                                    const Options& options);
  static StatusOr<std::unique_ptr<SavedModel>> Load(const std::string& folder,
                                                    const std::vector<std::string>& tags) {
    return Load(folder, tags, Options());
  }

  const MetaGraph& meta() const { return meta_; }
  Session& session() { return *session_; }

  // Runs a signature. Inputs and outputs are keyed by their names in the signature. InvalidArgument
  // if an input is missing, is not in the signature, or has another type or shape; NotFound if the
  // model has no such signature. Unimplemented if an input is sparse: such a signature can only be
  // run through the session.
  StatusOr<std::map<std::string, Tensor>> Call(const std::string& signature,
                                               const std::map<std::string, Tensor>& inputs);

 private:
  SavedModel() = default;
  Status Initialize(const std::string& folder, Env& env);

  Program program_;
  MetaGraph meta_;
  std::unique_ptr<Session> session_;
};

}  // namespace penstock::client
