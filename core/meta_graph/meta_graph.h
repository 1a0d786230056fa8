// SPDX-License-Identifier: Apache-2.0
//
// MetaGraph: what a program knew of its graph: variables and other collections, the nodes
// that save and restore, signatures; and SavedModels, which are some of them, with their graphs, in
// one file.
//
// The bytes come from strangers: a name is checked against the graph before it gets here. Errors
// name the file and the field. Text and binary files are told apart by content; fields that this
// version does not know are ignored.
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
  std::string name;  // "x:0"; of a sparse tensor, that of its values
  DType dtype = DType::kInvalid;
  PartialShape shape;
  std::string indices, dense_shape;  // of a sparse tensor, else empty
};

// A way to call a graph. The keys are what a caller calls the tensors.
struct Signature {
  std::map<std::string, TensorInfo> inputs, outputs;
  std::string method;
};

// Names of the nodes of a tf.train.Saver. All empty: the graph has none.
struct SaverNames {
  std::string filename_tensor;  // to be fed with the path
  std::string save_tensor;      // to be fetched: the path of what was saved
  std::string restore_op;       // to be run
  int max_to_keep = 0;
  bool sharded = false;
  bool v1_format = false;
};

// A file that the graph reads, in the folder "assets" of its SavedModel.
struct Asset {
  std::string tensor;  // to be fed with the path
  std::string filename;
};

// One of a program's lists, of whichever kind it is. Messages of other kinds (`Any`) are bytes.
struct Collection {
  struct Nodes {
    std::vector<std::string> names;  // of nodes or tensors, as they were written: may be of neither
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
  std::string initializer;  // the op that gives it its initial value
  std::string snapshot;     // a tensor that reads it
  bool is_resource = false;
  bool trainable = false;
  std::string whole_name;  // of a partitioned variable that this is a part of, else empty
};

struct MetaGraph {
  std::vector<std::string> tags;   // what a SavedModel knows it by
  std::string tensorflow_version;  // of the writer
  SaverNames saver;
  std::map<std::string, Collection> collections;
  std::map<std::string, Signature> signatures;
  std::vector<Asset> assets;

  // The variables of a collection; NotFound where there is none of that name, InvalidArgument where
  // it does not hold variables of this graph.
  StatusOr<std::vector<SavedVariable>> Variables(const std::string& collection,
                                                 const Graph& graph) const;
};

// These add the nodes to `graph`; after an error it is what it was.

// A ".meta" file of a saver.
StatusOr<MetaGraph> ReadMetaGraphFile(Env& env, const std::string& path, Graph* graph);
// The graph of the SavedModel in `folder` (saved_model.pb or saved_model.pbtxt) with exactly these
// tags, in any order; NotFound lists those that there are.
StatusOr<MetaGraph> ReadSavedModel(Env& env, const std::string& folder,
                                   const std::vector<std::string>& tags, Graph* graph);

// The tags of each graph in a SavedModel.
StatusOr<std::vector<std::vector<std::string>>> ListSavedModel(Env& env, const std::string& folder);

}  // namespace penstock
