// SPDX-License-Identifier: Apache-2.0
//
// ShapeInference: infers the shapes of a graph's outputs, and later those of nodes that are added
// to the graph. Because shape functions ask for them, it also computes small integer values (Const,
// Shape of a known shape, Pack of scalars, ...) and the types and shapes behind resource handles.
//
// Update infers each node after its sources. If there are loops, it repeats this until the shapes
// of loop-carried values no longer change; if they keep changing, these shapes become unknown. The
// shape of an unconnected input is unknown, too. Borrows the graph. Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/tensor/resource_handle.h"

namespace penstock {

// By node id: shapes of first outputs. They replace the shapes that inference would find.
using KnownShapes = absl::flat_hash_map<int, PartialShape>;

class ShapeInference {
 public:
  explicit ShapeInference(const Graph& graph, KnownShapes known = {})
      : graph_(graph), known_(std::move(known)) {}

  // Infers the nodes added since the last call. On an error, the node that the error names has
  // unknown shapes, and the next call continues with the nodes after it.
  Status Update();
  // REQUIRES: Update has inferred the node.
  const PartialShape& shape(int node, int index) const { return shapes_[node][index]; }
  // Returns the value of an output if it is known, else null. The pointer is valid until the next
  // Update.
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
