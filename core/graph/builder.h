// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: adds nodes to a graph. It makes names unique, applies scopes (names, devices,
// control dependencies, colocation), and infers types and shapes at once. Client programs and the
// gradient functions of ops build graphs with it.
//
// status() keeps the first error, which names the node; after it, calls do nothing. Not
// thread-safe. Owns its graph. Outputs borrow the builder.
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
  // Sets the source line of the node that is added next. If that node cannot be added, or fails in
  // a step of a client's session, the error names the line.
  void NoteSourceLine(SourceLine line) override;
  SourceLine SourceLineOf(const Node& node) const;

  const Graph& graph() const;
  Graph& mutable_graph();  // the next AddNode infers shapes of nodes added through this reference
  Output OutputOf(const Node* node, int index = 0);
  Node* NodeOf(Output output) const;

  // A node that is about to be added, which a Context may change.
  struct NewNode {
    string_view op;
    std::vector<NodeInput> inputs;
    Attrs attrs;
    std::string name;
    std::vector<Node*> control_inputs;
    int existing = -1;  // set by Adapt to the id of a node to use instead of adding a new one
  };
  // Adapts new nodes that are built inside a loop or a branch (flow_context.h).
  class Context {
   public:
    virtual ~Context() = default;
    // Rewrites a node for this context: inputs from outside enter through a Switch or an Enter. May
    // add nodes.
    virtual Status Adapt(NewNode* node) = 0;
    // Called for each node that is added in this context, or in a context inside it.
    virtual void Added(int node) = 0;
  };

  // A setting for new nodes, in force while the object lives. Scopes nest: the scope that was
  // opened last must be closed first.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept;
    ~Scope();

   private:
    friend class GraphBuilder;
    explicit Scope(GraphBuilder* builder) : builder_(builder) {}
    GraphBuilder* builder_;
  };
  // Opens a scope in which names of new nodes begin with "outer/name/", where "outer" is the
  // enclosing scope. A second scope with the same name becomes "name_1". A name that ends in "/" is
  // absolute and is not made unique: it reopens a scope. "" is the root.
  Scope NameScope(string_view name);
  std::string name_scope() const;  // "outer/name/", or ""
  // Opens a scope in which new nodes request `device`, a full or partial name. Its components
  // override those of outer scopes; "" overrides nothing.
  Scope DeviceScope(string_view device);
  // Opens a scope in which `function` chooses the device that a new node requests. In the spec that
  // `function` gets, `device` is the device that scopes inside this one request. Outer scopes fill
  // in the components that the result leaves out.
  using DeviceFunction = std::function<std::string(const Graph::NodeSpec&)>;
  Scope DeviceFunctionScope(DeviceFunction function);
  // Opens a scope in which every new node runs after the nodes of the outputs `after`, and after
  // those of outer scopes.
  Scope ControlDependencies(const std::vector<Output>& after);
  Scope ClearControlDependencies();
  // Opens a scope in which new nodes are colocated with the node of `with`. Devices and colocation
  // of outer scopes have no effect inside (TensorFlow's colocate_with(op, ignore_existing=True)).
  Scope ColocateWith(Output with);
  // Opens a scope in which `context`, which is borrowed, adapts new nodes; the contexts of outer
  // scopes do not. Control dependencies of outer scopes have no effect inside.
  Scope ContextScope(Context* context);
  // Opens a scope with the settings that were in force when the innermost context scope was opened,
  // except for control dependencies. A context adds the nodes that lead into it in such a scope.
  Scope OutsideScope();
  // Opens a scope in which new nodes have this line, even if NoteSourceLine sets another one: for
  // nodes that are made on behalf of another node.
  Scope SourceLineScope(SourceLine line);
  // Opens a scope in which only name scopes stay in force: no context, control dependencies,
  // devices or colocation.
  Scope BareScope();
  Context* context() const;  // null if there is none

 private:
  struct State;
  Scope Open();
  StatusOr<int> TryAddNode(NewNode node);
  std::unique_ptr<State> state_;
};

// Appends the line to the text of an error: " (made at train.cc:57)". Returns `status` unchanged if
// it is OK, or if the line is unknown.
Status MadeAt(const Status& status, SourceLine line);

}  // namespace penstock
