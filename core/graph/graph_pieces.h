// SPDX-License-Identifier: Apache-2.0
//
// A graph larger than 2 GiB as a sequence of GraphDefs, because one message cannot be so large.
// GraphPieces makes them; ConstantPieces makes a graph of them. They are the contents of a graph
// file (piece_file.h), or are sent to another process (distributed/rpc/graph_upload.h).
//
// All GraphDefs but the last one contain parts of large constants, as nodes of the pseudo op
// _ConstantPiece. The last one contains the nodes of the graph; its large constants have no values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace tensorflow {
class GraphDef;
class NodeDef;
}  // namespace tensorflow

namespace penstock {

struct PieceLimits {
  // A graph with at most so many bytes stays whole. So one message holds it, and other programs can
  // read it.
  int64_t whole_bytes_max = INT32_MAX;
  int64_t piece_bytes_max = 64 << 20;     // bytes of a constant in one GraphDef
  int64_t constant_bytes_min = 64 << 10;  // smaller constants stay in the last GraphDef
};

class GraphPieces {
 public:
  // Takes the nodes from `first_id` on. Borrows the graph.
  GraphPieces(const Graph& graph, const PieceLimits& limits, int first_id = 0);

  // Returns whether there is only one GraphDef, the same as that of ExportGraph.
  bool whole() const { return large_.empty(); }
  // Writes the next GraphDef to `def`. Returns false if there are no more.
  bool Next(tensorflow::GraphDef* def);

 private:
  void WritePiece(tensorflow::GraphDef* def);
  void WriteNodes(tensorflow::GraphDef* def) const;

  const Graph& graph_;
  const PieceLimits limits_;
  const int first_id_;
  std::vector<const Node*> large_;  // constants that are written in pieces, in order of id
  size_t next_ = 0;                 // the constant in large_ whose next piece is written
  int64_t offset_ = 0;              // where in its bytes that piece begins
  bool ended_ = false;
};

// As WriteGraphFile of graph_proto.h. A graph whose tensors, or whose GraphDef, take more than
// `limits.whole_bytes_max` is written in pieces (piece_file.h); ReadGraphFile reads these files,
// other programs do not. ResourceExhausted if the graph is too large for a text file, or if it is
// larger than 2 GiB without its large constants of numbers.
Status WriteGraphFile(Env& env, const Graph& graph, const std::string& path,
                      const PieceLimits& limits);

// Collects the parts of constants until the nodes of the graph follow. Does not trust the
// GraphDefs.
class ConstantPieces {
 public:
  // `bytes_max` limits the bytes of all constants together: they cannot have more than their file.
  // `constant_bytes_min` is the size of the smallest constant that may come in pieces.
  explicit ConstantPieces(int64_t bytes_max, int64_t constant_bytes_min = 1)
      : bytes_left_(bytes_max), constant_bytes_min_(constant_bytes_min) {}

  // Returns whether the GraphDef contains parts of constants instead of nodes.
  static bool IsPiece(const tensorflow::GraphDef& def);
  // Returns the CRC-32C of the bytes of the parts; 0 if the GraphDef contains nodes.
  static uint32_t Checksum(const tensorflow::GraphDef& def);

  // Stores parts of constants. The parts of one constant must come in order. InvalidArgument if a
  // part is malformed, does not continue its constant, or is for a constant that is too small;
  // DataLoss if the constants have more bytes than `bytes_max`; ResourceExhausted if this task has
  // no memory for the constant.
  Status Add(const tensorflow::GraphDef& def);
  // Adds the nodes of `def` to `graph` (ImportGraph), and gives them the values that have come in
  // pieces. Changes `def`. Call it once. InvalidArgument if a value is missing or incomplete, or is
  // for a node that is no constant; then the graph stays as it was.
  Status Import(tensorflow::GraphDef* def, Graph* graph);

 private:
  struct Arriving {
    Tensor value;
    int64_t filled = 0;  // bytes
  };

  Status AddPiece(const tensorflow::NodeDef& piece);

  int64_t bytes_left_;
  const int64_t constant_bytes_min_;
  std::map<std::string, Arriving> arrivings_;  // by name
};

}  // namespace penstock
