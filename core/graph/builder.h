// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: adds nodes to a graph with the conveniences of a client: unique names, name scopes,
// device scopes, control-dependency scopes, colocation, type inference and shape inference on the
// spot. What ops' gradients and client programs build with.
//
// Errors are sticky: the first one is kept, names the node, and everything after it is a no-op.
// Not thread-safe. Owns its graph. Outputs borrow it.
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
  // Goes on where `graph` ends.
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

  const Graph& graph() const;
  Graph& mutable_graph();  // nodes added behind its back are understood at the next AddNode
  Output OutputOf(const Node* node, int index = 0);
  Node* NodeOf(Output output) const;

  // What a new node passes through on its way into a loop or a branch (flow_context.h).
  struct NewNode {
    string_view op;
    std::vector<NodeInput> inputs;
    Attrs attrs;
    std::string name;
    std::vector<Node*> control_inputs;
    int existing = -1;  // set by Adapt: this node serves, none is to be added
  };
  class Context {
   public:
    virtual ~Context() = default;
    // Makes of a node what it must be here: what comes from outside is led in. May add nodes.
    virtual Status Adapt(NewNode* node) = 0;
    virtual void Added(int node) = 0;
  };

  // A scope is in force while the object lives; scopes nest: the last one opened closes first.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept;
    ~Scope();

   private:
    friend class GraphBuilder;
    explicit Scope(GraphBuilder* builder) : builder_(builder) {}
    GraphBuilder* builder_;
  };
  // Names of nodes begin with "outer/name/"; a scope of the same name opened twice is "name_1" the
  // second time. A name that ends in "/" is taken as it is, from the root: how to come back to a
  // scope. "" is the root.
  Scope NameScope(string_view name);
  std::string name_scope() const;  // "outer/name/", or ""
  // Parts given here override those of outer scopes; "" clears nothing.
  Scope DeviceScope(string_view device);
  // Called for each node added; returns the device to ask for. The spec's device is what the scopes
  // inside this one ask for; scopes outside fill in the parts that the result leaves open.
  using DeviceFunction = std::function<std::string(const Graph::NodeSpec&)>;
  Scope DeviceFunctionScope(DeviceFunction function);
  // Every new node runs after these nodes (any output stands for its node) and those of outer
  // scopes.
  Scope ControlDependencies(const std::vector<Output>& after);
  Scope ClearControlDependencies();
  // New nodes go where the node of `with` goes. Devices and colocation of outer scopes do not count
  // inside, as with TensorFlow's `colocate_with(op, ignore_existing=True)`.
  Scope ColocateWith(Output with);
  // New nodes pass through `context`, which is borrowed, and no longer through that of an outer
  // scope. Control dependencies of outer scopes do not count inside.
  Scope ContextScope(Context* context);
  // The scopes that were in force when the innermost context scope was opened, but for control
  // dependencies: where a context adds what leads into it.
  Scope OutsideScope();
  // No context, control dependencies, devices or colocation; only names.
  Scope BareScope();
  Context* context() const;  // null where there is none

 private:
  struct State;
  Scope Open();
  StatusOr<int> TryAddNode(NewNode node);
  std::unique_ptr<State> state_;
};

}  // namespace penstock
