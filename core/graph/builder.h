// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: adds nodes to a graph with the conveniences of a client: unique names, name scopes,
// device scopes, control-dependency scopes, colocation, type inference and shape inference on the
// spot. What ops' gradients and client programs build with.
//
// Errors are sticky: the first one is kept, names the node, and everything after it is a no-op.
// Not thread-safe. Owns its graph. Outputs borrow it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/output.h"
#include "core/op/resource.h"

namespace penstock {

class GraphBuilder final : public GraphSink {
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
  Status status() const override;
  void Fail(Status status) override;

  const Graph& graph() const;
  Graph& mutable_graph();  // nodes added behind its back are understood at the next AddNode
  Output OutputOf(const Node* node, int index = 0);
  Node* NodeOf(Output output) const;

  // A scope is in force while the object lives; scopes nest.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept;
    ~Scope();

   private:
    friend class GraphBuilder;
    explicit Scope(GraphBuilder* builder) : builder_(builder) {}
    GraphBuilder* builder_;
  };
  Scope NameScope(string_view name);  // "a/b/"
  // Parts given here override those of outer scopes; "" clears nothing.
  Scope DeviceScope(string_view device);
  // Called for each node added, after the scopes: returns the device to ask for.
  using DeviceFunction = std::function<std::string(const Graph::NodeSpec&)>;
  Scope DeviceFunctionScope(DeviceFunction function);
  Scope ControlDependencies(const std::vector<Output>& after);  // and whole nodes: any output of it
  Scope ClearControlDependencies();
  Scope ColocateWith(Output with);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
