// SPDX-License-Identifier: Apache-2.0
//
// FunctionLibrary: finds the functions of a graph by name, and says which of their nodes have
// effects. IsCall, IsIf and similar functions: tell by an op's name how its nodes use functions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/registry.h"

namespace google::protobuf {
template <class T>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace tensorflow {
class FunctionDef;
class GraphDef;
class NodeDef;
}  // namespace tensorflow

namespace penstock {

// Returns true for ops that call the function in an attribute, such as PartitionedCall.
bool IsCall(const std::string& op);
bool IsIf(const std::string& op);
bool IsCase(const std::string& op);
bool IsWhile(const std::string& op);
bool IsFor(const std::string& op);
bool IsRemoteCall(const std::string& op);
bool IsGradient(const std::string& op);
bool IsFunctional(const std::string& op);  // any of the above
// Returns whether tf.cond, tf.while_loop or tf.switch_case made the node. A step runs only the
// nodes that it needs of the functions of such a node, as of a graph. In all other functions,
// TensorFlow runs every stateful node.
bool RunsOnlyNeededNodes(const tensorflow::NodeDef& node);
// Returns the functions that the attributes of one node name.
std::vector<std::string> NamedFunctions(const tensorflow::NodeDef& node);

// Borrows its two arguments.
class FunctionLibrary {
 public:
  FunctionLibrary(const tensorflow::GraphDef& graph, const Registry& registry);
  const Registry& registry() const { return registry_; }

  // Adds a function. InvalidArgument if there is one with its name.
  Status Add(tensorflow::FunctionDef function);
  StatusOr<const tensorflow::FunctionDef*> Find(const std::string& name) const;
  // Returns whether `name` is a function and not an op.
  bool HasInsteadOfOp(const std::string& name) const;
  // Returns whether a node uses resources. Such a node must run on the device of the resources,
  // even if it is in a function.
  bool UsesResources(const tensorflow::NodeDef& node) const;
  // Returns whether a node must run even if no node uses its results: its op is stateful, or it
  // calls a function with such a node. `node` belongs to the graph or to a function.
  bool HasEffects(const tensorflow::NodeDef& node) const;
  // Returns the nodes of a function that must run even if the function's results do not need them;
  // a call must wait for them. If the function lists such nodes in control_ret, returns only these.
  // The result includes nodes on branches and in loops (NodesInFlow).
  std::vector<std::string> NodesWithEffects(const tensorflow::FunctionDef& function) const;
  // Returns the function that computes the gradients of `function`, as a client has registered it;
  // "" if it has not.
  std::string GradientOf(const std::string& function) const;
  // Returns the first function with a registered gradient among those that `function` calls, at any
  // depth; "" if there is none.
  std::string CalledWithGradient(const std::string& function) const;
  // Returns the position, among all outputs of a node, of output `index` of the argument `arg`.
  StatusOr<int> OutputIndex(const tensorflow::NodeDef& node, const std::string& arg,
                            int index) const;
  // Returns the names of the nodes on branches or in loops: those that depend on a Switch or an
  // Enter. `nodes` are the nodes of a graph or of a function's body.
  std::set<std::string> NodesInFlow(
      const google::protobuf::RepeatedPtrField<tensorflow::NodeDef>& nodes) const;

 private:
  // Returns the functions in which HasEffects is true for a node.
  std::set<std::string> FindFunctionsWithEffects() const;
  bool IsStateful(const tensorflow::NodeDef& node) const;
  // Returns the functions of the library that a node calls; none if RunsOnlyNeededNodes(node).
  std::vector<std::string> CalledBy(const tensorflow::NodeDef& node) const;

  const Registry& registry_;
  std::map<std::string, const tensorflow::FunctionDef*> functions_;
  std::vector<std::shared_ptr<const tensorflow::FunctionDef>> added_;
  std::map<std::string, std::string> gradients_;  // registered gradient functions, by function
  std::set<std::string> with_effects_;            // functions in which HasEffects(some node)
};

}  // namespace penstock
