// SPDX-License-Identifier: Apache-2.0
//
// FunctionLibrary: finds the functions of a graph by name.
#pragma once

#include <map>
#include <set>
#include <string>

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

// Returns true for ops that have functions as attributes.
bool IsCall(const std::string& op);
bool IsIf(const std::string& op);
bool IsWhile(const std::string& op);
bool IsFunctional(const std::string& op);  // any of the above

// Borrows its two arguments.
class FunctionLibrary {
 public:
  FunctionLibrary(const tensorflow::GraphDef& graph, const Registry& registry);

  StatusOr<const tensorflow::FunctionDef*> Find(const std::string& name) const;
  // Returns whether `name` is a function and not an op.
  bool HasInsteadOfOp(const std::string& name) const;
  // Returns whether a node uses resources: it must run on their device, also if it is in a
  // function.
  bool UsesResources(const tensorflow::NodeDef& node) const;
  // Returns the flat number of output `index` of the argument `arg` of a node.
  StatusOr<int> OutputIndex(const tensorflow::NodeDef& node, const std::string& arg,
                            int index) const;
  // Returns the names of those of `nodes` that run depending on the control flow among them: those
  // that depend on a Switch or an Enter. `nodes` are the nodes of a graph or of a function's body.
  std::set<std::string> NodesInFlow(
      const google::protobuf::RepeatedPtrField<tensorflow::NodeDef>& nodes) const;

 private:
  const Registry& registry_;
  std::map<std::string, const tensorflow::FunctionDef*> functions_;
};

}  // namespace penstock
