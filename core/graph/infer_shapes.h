// SPDX-License-Identifier: Apache-2.0
//
// ShapeInference: infers the shapes of a graph's outputs, also of nodes that are added later.
// Besides shapes it tracks small integer values (Const, Shape of a known shape, Pack of scalars,
// ...) and the contents of resource handles, because shape functions ask for them.
//
// Each node is inferred after its sources. If there are loops, this is repeated until the shapes of
// loop-carried values no longer change; if they keep changing, these shapes become unknown, as
// those of unconnected inputs are. Borrows the graph. Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/tensor/resource_handle.h"

namespace penstock {

// Shapes of nodes' first outputs, by node id, that the caller knows better than the ops do.
using KnownShapes = absl::flat_hash_map<int, PartialShape>;

class ShapeInference {
 public:
  explicit ShapeInference(const Graph& graph, KnownShapes known = {})
      : graph_(graph), known_(std::move(known)) {}

  // Infers the nodes added since the last call. After an error the node that it names has unknown
  // shapes; the next call continues after that node.
  Status Update();
  // REQUIRES: Update has inferred the node.
  const PartialShape& shape(int node, int index) const { return shapes_[node][index]; }
  // Returns the value of an output if it is known, else null. Valid until the next Update.
  const Tensor* ConstantOf(Endpoint source) const;
  int num_seen() const { return static_cast<int>(shapes_.size()); }
  ShapeMap TakeShapes() { return std::move(shapes_); }

 private:
  Status InferWithSources(const Node& node);
  Status Infer(const Node& node);
  Status RunShapeFunction(const Node& node);
  bool IsReady(Endpoint source, const Node& dst) const;
  const ResourceHandle::Element* ElementOf(Endpoint source) const;
  void Evaluate(const Node& node);

  using Key = std::pair<int, int>;  // node, output
  static Key KeyOf(Endpoint e) { return {e.node->id(), e.index}; }

  const Graph& graph_;
  const KnownShapes known_;
  ShapeMap shapes_;
  std::vector<bool> visited_;
  absl::flat_hash_map<Key, Tensor> constants_;  // values of nodes other than Const nodes
  absl::flat_hash_map<Key, ResourceHandle::Element> elements_;
};

// Does the same as InferShapes (graph.h), but takes the shapes in `known` instead of inferring
// them.
StatusOr<ShapeMap> InferShapesWith(const Graph& graph, KnownShapes known);

}  // namespace penstock
