// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: adds nodes to a graph with the conveniences of a client: unique names, name scopes,
// device scopes, control-dependency scopes, colocation, and immediate type and shape inference.
// Gradients of ops and client programs build graphs with it.
//
// Errors are sticky: the first one is kept and names the node; all later calls do nothing. Not
// thread-safe. Owns its graph. Outputs borrow it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/output.h"

namespace penstock {

class GraphBuilder : public GraphSink {
 public:
  explicit GraphBuilder(const Registry& registry = Registry::Global());
  ~GraphBuilder() override;
  // Starts with `graph` and adds nodes to it.
  explicit GraphBuilder(Graph graph);

  int AddNode(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
              string_view name) override;
  int num_outputs(int node) const override;
  EdgeType output_type(int node, int index) const override;
  PartialShape output_shape(int node, int index) const override;
  std::string output_name(int node, int index) const override;
  const Tensor* output_constant(int node, int index) const override;
  Status status() const override;
  void Fail(Status status) override;
  // If the next node cannot be added, or fails in a step of a client's session, the error names the
  // line.
  void NoteSourceLine(SourceLine line) override;
  SourceLine SourceLineOf(const Node& node) const;

  const Graph& graph() const;
  Graph& mutable_graph();  // The next AddNode notices nodes that are added through this reference.
  Output OutputOf(const Node* node, int index = 0);
  Node* NodeOf(Output output) const;

  // Adapts new nodes that are built inside a loop or a branch (flow_context.h).
  struct NewNode {
    string_view op;
    std::vector<NodeInput> inputs;
    Attrs attrs;
    std::string name;
    std::vector<Node*> control_inputs;
    int existing = -1;  // set by Adapt: this node is used, and none is added
  };
  class Context {
   public:
    virtual ~Context() = default;
    // Rewrites a node for this context: inputs from outside enter through a Switch or an Enter. May
    // add nodes.
    virtual Status Adapt(NewNode* node) = 0;
    // Called for each node that is added in this context, or in a context inside it.
    virtual void Added(int node) = 0;
  };

  // A scope is in force while the object lives. Scopes nest: the last one opened must be closed
  // first.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept;
    ~Scope();

   private:
    friend class GraphBuilder;
    explicit Scope(GraphBuilder* builder) : builder_(builder) {}
    GraphBuilder* builder_;
  };
  // Names of new nodes begin with "outer/name/". A second scope of the same name is called
  // "name_1". A name that ends in "/" is absolute and not made unique: use it to reopen a scope. ""
  // is the root.
  Scope NameScope(string_view name);
  std::string name_scope() const;  // "outer/name/", or ""
  // Components of the device name given here override those of outer scopes; "" overrides nothing.
  Scope DeviceScope(string_view device);
  // Called for each node added; returns the device to request. The spec's device is the one that
  // the scopes inside this one request; scopes outside fill in the components that the result
  // leaves open.
  using DeviceFunction = std::function<std::string(const Graph::NodeSpec&)>;
  Scope DeviceFunctionScope(DeviceFunction function);
  // Every new node runs after these nodes (any output stands for its node) and those of outer
  // scopes.
  Scope ControlDependencies(const std::vector<Output>& after);
  Scope ClearControlDependencies();
  // New nodes are colocated with the node of `with`. Devices and colocation of outer scopes have no
  // effect inside, as with TensorFlow's `colocate_with(op, ignore_existing=True)`.
  Scope ColocateWith(Output with);
  // New nodes are adapted by `context`, which is borrowed, and no longer by the context of an outer
  // scope. Control dependencies of outer scopes have no effect inside.
  Scope ContextScope(Context* context);
  // Restores the scopes that were in force when the innermost context scope was opened, except for
  // control dependencies. A context uses it to add the nodes that lead into it.
  Scope OutsideScope();
  // New nodes have this line, whatever NoteSourceLine says: for nodes that are made on behalf of
  // another one.
  Scope SourceLineScope(SourceLine line);
  // Inside, name scopes stay in force, but no context, control dependencies, devices or colocation.
  Scope BareScope();
  Context* context() const;  // null if there is none

 private:
  struct State;
  Scope Open();
  StatusOr<int> TryAddNode(NewNode node);
  std::unique_ptr<State> state_;
};

// Appends the line to the text of an error: " (made at train.cc:57)". Returns OK, or an error
// without a known line, as it is.
Status MadeAt(const Status& status, SourceLine line);

}  // namespace penstock
