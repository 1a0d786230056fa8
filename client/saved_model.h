// SPDX-License-Identifier: Apache-2.0
//
// Graphs that were saved with their variables: SavedModels, and the ".meta" files of savers.
//
//   auto model = SavedModel::Load("/models/1", {"serve"});
//   auto outputs = (*model)->Call("serving_default", {{"x", x}});
//
// A ".meta" file is read into a program, and its saver is used by the names in it:
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

// Gives the variables of the saver the values in the checkpoint `path`, which is read by the tasks
// that hold them. FailedPrecondition if the graph has no saver.
Status RestoreVariables(Session& session, const SaverNames& saver, const std::string& path);
// Writes a checkpoint and returns its name.
StatusOr<std::string> SaveVariables(Session& session, const SaverNames& saver,
                                    const std::string& path);

// A graph of a SavedModel with its variables, in a session of its own. Thread-safe.
class SavedModel {
 public:
  struct Options {
    std::string target = "";  // of the session: "" is this process
    SessionOptions session = {};
    Env* env = &Env::Real();  // reads the graph; variables and assets are read by the tasks
  };

  // The graph with these tags (TensorFlow's builders call the one to be scored "serve"), its
  // variables restored and what it names as its initialisation done.
  static StatusOr<std::unique_ptr<SavedModel>> Load(const std::string& folder,
                                                    const std::vector<std::string>& tags,
                                                    const Options& options);
  static StatusOr<std::unique_ptr<SavedModel>> Load(const std::string& folder,
                                                    const std::vector<std::string>& tags) {
    return Load(folder, tags, Options());
  }

  const MetaGraph& meta() const { return meta_; }
  Session& session() { return *session_; }

  // Runs a signature: tensors by the names that it gives them. InvalidArgument if an input is
  // missing, is not one of the signature's, or is of another type or shape; sparse ones can only be
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
