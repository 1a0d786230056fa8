// SPDX-License-Identifier: Apache-2.0
//
// MetaGraph: a program's data about its graph: variables and other collections, the nodes that save
// and restore, signatures. Also reads SavedModels: files with one or more MetaGraphs and their
// graphs.
//
// The files are not trusted: the readers check every name in these structures against the graph,
// except where a comment says otherwise. Errors name the file and the field. The readers recognise
// text and binary files by their contents, and ignore fields that this version does not know.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/graph/graph.h"

namespace penstock {

// A tensor of a signature.
struct TensorInfo {
  std::string name;  // "x:0"; for a sparse tensor, the name of the tensor with its values
  DType dtype = DType::kInvalid;
  PartialShape shape;
  std::string indices, dense_shape;  // for a sparse tensor, else empty
};

// A way to call a graph. The keys are the callers' names of the tensors.
struct Signature {
  std::map<std::string, TensorInfo> inputs, outputs;
  std::string method;
};

// The names of the nodes of a tf.train.Saver. All empty: the graph has no saver.
struct SaverNames {
  std::string filename_tensor;  // feed it with the path
  std::string
      save_tensor;  // fetch this tensor to save; its value is the path of the saved checkpoint
  std::string restore_op;  // run this node to restore
  int max_to_keep = 0;
  bool sharded = false;
  bool v1_format = false;
};

// A file that the graph reads, in the folder "assets" of its SavedModel.
struct Asset {
  std::string tensor;  // feed it with the path
  std::string filename;
};

// One of a program's collections, of any kind. Messages of unknown kinds (`Any`) are kept as bytes.
struct Collection {
  struct Nodes {
    std::vector<std::string> names;  // names of nodes or tensors, copied from the file unchecked
  };
  struct Bytes {
    std::vector<std::string> values;
  };
  std::variant<Nodes, Bytes, std::vector<int64_t>, std::vector<float>> values;
  int64_t size() const;
};

// An entry of the collections "variables", "trainable_variables" and so on.
struct SavedVariable {
  std::string name;         // "w:0"
  std::string initializer;  // the op that assigns its initial value
  std::string snapshot;     // a tensor with its value
  bool is_resource = false;
  bool trainable = false;
  // The name of the partitioned variable of which this variable is a partition, or "".
  std::string whole_name;
};

struct MetaGraph {
  std::vector<std::string> tags;   // the tags that identify it in a SavedModel
  std::string tensorflow_version;  // the version of TensorFlow that wrote the file
  SaverNames saver;
  std::map<std::string, Collection> collections;
  std::map<std::string, Signature> signatures;
  std::vector<Asset> assets;

  // Returns the variables of a collection; NotFound if there is no collection with that name,
  // InvalidArgument if it does not hold variables of this graph.
  StatusOr<std::vector<SavedVariable>> Variables(const std::string& collection,
                                                 const Graph& graph) const;
};

// ReadMetaGraphFile and ReadSavedModel add the nodes to `graph`; after an error `graph` is
// unchanged.

// Reads a ".meta" file of a saver.
StatusOr<MetaGraph> ReadMetaGraphFile(Env& env, const std::string& path, Graph* graph);
// Reads the graph with exactly these tags, in any order, from the SavedModel in `folder`
// (saved_model.pb or saved_model.pbtxt); NotFound lists the tags that exist.
StatusOr<MetaGraph> ReadSavedModel(Env& env, const std::string& folder,
                                   const std::vector<std::string>& tags, Graph* graph);

// Returns the tags of each graph in a SavedModel.
StatusOr<std::vector<std::vector<std::string>>> ListSavedModel(Env& env, const std::string& folder);

}  // namespace penstock
