// SPDX-License-Identifier: Apache-2.0
//
// GraphPieces: a graph as a sequence of GraphDefs that are small enough for messages, although the
// graph's constants are not. ConstantPieces: the other end, which puts the graph together.
//
//   GraphPieces pieces(graph, first_id, limits);
//   tensorflow::GraphDef def;
//   while (pieces.Next(&def)) Send(def);
//
//   if (ConstantPieces::IsPiece(def)) return constants.Add("", def);
//   return constants.Import("", &def, &graph, ImportGraph);
//
// All GraphDefs but the last one contain parts of large constants, as nodes of the pseudo op
// _ConstantPiece. The last one contains the nodes of the graph; its large constants have no values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace tensorflow {
class GraphDef;
class NodeDef;
}  // namespace tensorflow

namespace penstock {

struct PieceLimits {
  int64_t whole_bytes_max = int64_t{1} << 30;  // a graph with at most so many bytes stays whole
  int64_t piece_bytes_max = int64_t{1} << 20;  // bytes of a constant in one GraphDef
  int64_t constant_bytes_min = 64 << 10;       // smaller constants stay in the last GraphDef
};

class GraphPieces {
 public:
  // Takes the nodes from `first_id` on. Borrows the graph.
  explicit GraphPieces(const Graph& graph, int first_id = 0, const PieceLimits& limits = {});

  // Returns whether there is only one GraphDef, the same as that of ExportGraph.
  bool whole() const { return large_.empty(); }
  // Writes the next GraphDef to `def`. Returns false if there are no more.
  bool Next(tensorflow::GraphDef* def);

 private:
  void WritePiece(tensorflow::GraphDef* def);
  void WriteNodes(tensorflow::GraphDef* def) const;

  const Graph& graph_;
  const int first_id_;
  const PieceLimits limits_;
  std::vector<const Node*> large_;  // constants that are sent in pieces, in order of id
  size_t next_ = 0;                 // the constant in large_ whose next piece is sent
  int64_t offset_ = 0;              // where in its bytes that piece begins
  bool ended_ = false;
};

// As WriteGraphFile of graph_proto.h. A graph whose tensors, or whose GraphDef, take more than
// `limits.whole_bytes_max` is written in pieces (piece_file.h); ReadGraphFile reads these files,
// other programs do not. ResourceExhausted if the graph is too large for a text file, or if it is
// larger than 2 GiB without its large constants of numbers.
Status WriteGraphFile(Env& env, const Graph& graph, const std::string& path,
                      const PieceLimits& limits);

// Collects the pieces of constants until their graph arrives. Pieces of several graphs may arrive
// at the same time; each graph has a scope, a name. Does not trust the messages. Thread-safe.
class ConstantPieces {
 public:
  // `bytes_max` limits the bytes of all constants that wait for their graphs.
  explicit ConstantPieces(int64_t bytes_max = int64_t{1} << 34) : bytes_max_(bytes_max) {}

  // Returns whether the GraphDef contains parts of constants instead of nodes.
  static bool IsPiece(const tensorflow::GraphDef& def);

  // Stores parts of constants. The parts of one constant must come in order; a first part replaces
  // a constant of the same name. InvalidArgument if a part is malformed or does not continue its
  // constant; ResourceExhausted if this task has no memory for the constant.
  Status Add(const std::string& scope, const tensorflow::GraphDef& def);
  // Adds the nodes of `def` to `graph` by `import`, and gives them the values that have come in
  // pieces. Forgets all constants of the scope, also if this fails. Changes `def`.
  // InvalidArgument if a value is missing or incomplete, or is for a node that is no constant; then
  // the graph stays as it was. InvalidArgument, too, if `import` has not added the constant.
  Status Import(const std::string& scope, tensorflow::GraphDef* def, Graph* graph,
                absl::FunctionRef<Status(const tensorflow::GraphDef&, Graph*)> import);
  // Forgets the constants of all scopes that begin with `prefix`.
  void Forget(const std::string& prefix);

 private:
  struct Arriving {
    Tensor value;
    int64_t filled = 0;  // bytes
  };
  using Arrivings = std::map<std::string, Arriving>;  // by name

  Status AddPiece(const tensorflow::NodeDef& piece, Arrivings* arrivings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Arrivings Take(const std::string& scope);

  const int64_t bytes_max_;
  Mutex mu_;
  std::map<std::string, Arrivings> scopes_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of all constants in scopes_
};

}  // namespace penstock
