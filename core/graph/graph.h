// SPDX-License-Identifier: Apache-2.0
//
// Graph: a program as nodes (ops with attributes) that are joined by data and control edges.
//
// Nodes have ids 0, 1, 2, ... in order of creation; the id of a removed node is not used again.
// Each edge is stored at both of its nodes. Adding and removing an edge takes constant time; in
// exchange, the order of a node's consumers is deterministic but has no meaning. A cycle is legal
// only if it goes through a NextIteration node. Clone copies a graph. Not thread-safe; const
// methods may run concurrently.
// Invariants (checked by Validate): names are unique; every op is in the registry and attributes
// are complete; edge types agree at both ends; no cycle other than loops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"

namespace penstock {

class Node;

// One end of a data edge: output `index` of `node`.
struct Endpoint {
  Node* node = nullptr;
  int index = 0;
  bool operator==(const Endpoint&) const = default;
};

// One consumer of an output.
struct OutEdge {
  Node* dst = nullptr;
  int src_index = 0;  // which output
  int dst_index = 0;  // which input
  bool operator==(const OutEdge&) const = default;
};

class Node {
 public:
  int id() const { return id_; }
  const std::string& name() const { return name_; }
  const OpDef& op() const { return *op_; }
  const std::string& op_name() const { return op_->name; }
  const Attrs& attrs() const { return attrs_; }  // all attributes, including defaults
  const AttrValue* FindAttr(string_view name) const;
  template <class T>
  const T* attr(string_view name) const {
    const AttrValue* value = FindAttr(name);
    return value == nullptr ? nullptr : value->get<T>();
  }
  // The device that the program requests, a full or partial name ("" if none), and the full name of
  // the device that the placer has chosen.
  const std::string& requested_device() const { return requested_device_; }
  const std::string& assigned_device() const { return assigned_device_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  Endpoint input(int i) const { return inputs_[i]; }
  EdgeType input_type(int i) const { return input_types_[i]; }
  EdgeType output_type(int i) const { return output_types_[i]; }
  const std::vector<Endpoint>& inputs() const { return inputs_; }
  const std::vector<EdgeType>& input_types() const { return input_types_; }
  const std::vector<EdgeType>& output_types() const { return output_types_; }
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  const std::vector<OutEdge>& out_edges() const { return out_edges_; }
  const std::vector<Node*>& control_outputs() const { return control_outputs_; }

 private:
  friend class Graph;
  int id_ = -1;
  std::string name_;
  const OpDef* op_ = nullptr;
  Attrs attrs_;
  std::string requested_device_, assigned_device_;
  std::vector<Endpoint> inputs_;
  std::vector<EdgeType> input_types_, output_types_;
  std::vector<Node*> control_inputs_, control_outputs_;
  std::vector<OutEdge> out_edges_;
  std::vector<int> out_slots_;  // per input: the position of its OutEdge in the source's list
  bool attrs_checked_ = false;  // set to false by set_attr
};

class Graph {
 public:
  explicit Graph(const Registry& registry) : registry_(&registry) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  Graph Clone() const;  // with the same ids

  const Registry& registry() const { return *registry_; }
  int num_nodes() const { return num_nodes_; }  // without removed nodes
  int max_id() const { return static_cast<int>(nodes_.size()); }
  Node* node(int id) const { return nodes_[id].get(); }  // null if removed
  Node* FindNode(string_view name) const;                // null if there is none
  std::vector<Node*> nodes() const;                      // without removed nodes, in order of id

  // The description of a new node. AddNode completes and checks attributes, derives the types, and
  // checks every input's type against its source. Errors name the node. An input may be Endpoint{},
  // for a back edge; connect it later with SetInput.
  struct NodeSpec {
    std::string name;
    std::string op;
    std::vector<Endpoint> inputs = {};
    std::vector<Node*> control_inputs = {};
    Attrs attrs = {};
    std::string device = "";
  };
  StatusOr<Node*> AddNode(NodeSpec spec);

  // Replaces an input and checks types. Endpoint{} disconnects it.
  Status SetInput(Node* node, int index, Endpoint source);
  void AddControlEdge(Node* src, Node* dst);  // a second edge is ignored
  void RemoveControlEdge(Node* src, Node* dst);
  // Connects all data consumers of `from` to `to` instead. If the types do not fit, returns an
  // error and changes nothing.
  Status ReplaceUses(Endpoint from, Endpoint to);
  // Removes a node and its edges. REQUIRES: it has no data consumers.
  void RemoveNode(Node* node);
  // Removes all nodes with ids from `first_id` on, even if their inputs are not connected yet.
  // REQUIRES: no older node depends on them.
  void RemoveNodesFrom(int first_id);
  void set_requested_device(Node* node, std::string device) {
    node->requested_device_ = std::move(device);
  }
  void set_assigned_device(Node* node, std::string device) {
    node->assigned_device_ = std::move(device);
  }
  void set_attr(Node* node, const std::string& name, AttrValue value) {
    node->attrs_[name] = std::move(value);
    node->attrs_checked_ = false;  // Validate must check again
  }
  // Returns a name that no node has: `base`, or base_1, base_2, ... Never returns the same numbered
  // name twice.
  std::string UniqueName(string_view base);

  // Returns the nodes in an order in which every node comes after its sources, except for loop back
  // edges. InvalidArgument names the nodes of a cycle.
  StatusOr<std::vector<Node*>> TopologicalOrder() const;
  // Checks all invariants. Errors name the node.
  Status Validate() const;

 private:
  using ControlEdge = std::pair<int, int>;  // ids of source and destination
  struct ControlSlots {
    int at_src = 0, at_dst = 0;  // position of the edge in control_outputs_ and control_inputs_
  };

  Status CheckInput(const Node& node, int index, Endpoint source) const;
  void Connect(Node* node, int index, Endpoint source);
  void Disconnect(Node* node, int index);
  Status ValidateNode(const Node& node) const;

  const Registry* registry_;
  std::vector<std::unique_ptr<Node>> nodes_;
  absl::flat_hash_map<string_view, Node*> by_name_;  // keys point to the nodes' own names
  absl::flat_hash_map<ControlEdge, ControlSlots> control_edges_;
  absl::flat_hash_map<std::string, int> suffixes_;  // the last number used, by base name
  int num_nodes_ = 0;
};

// Returns true for an edge that closes a loop: from a NextIteration to a Merge. Only such edges may
// close a cycle.
bool IsLoopBackEdge(const Node& src, const Node& dst);

// Returns true if `name` consists of letters, digits and _.\/>- and begins with a letter, a digit,
// a dot or an underscore (names of nodes that the runtime adds begin with an underscore).
bool IsValidNodeName(string_view name);

// "name", "name:3" or "^name", as written in GraphDefs, feeds and fetches.
struct TensorName {
  std::string node;
  int index = 0;
  bool control = false;
  static StatusOr<TensorName> Parse(string_view text);
  std::string ToString() const;
  bool operator==(const TensorName&) const = default;
};

using ShapeMap = std::vector<std::vector<PartialShape>>;  // by node id, by output
// Infers and returns the shapes of all outputs of the graph. Uses the values of constants. Errors
// of shape functions name the node.
StatusOr<ShapeMap> InferShapes(const Graph& graph);

}  // namespace penstock
