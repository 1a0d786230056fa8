// SPDX-License-Identifier: Apache-2.0
//
// The functions of a graph, as its nodes call them.
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

// Ops whose attributes are functions.
bool IsCall(const std::string& op);
bool IsIf(const std::string& op);
bool IsWhile(const std::string& op);
bool IsFunctional(const std::string& op);  // any of them

// Borrows both.
class FunctionLibrary {
 public:
  FunctionLibrary(const tensorflow::GraphDef& graph, const Registry& registry);

  StatusOr<const tensorflow::FunctionDef*> Find(const std::string& name) const;
  // Whether `name` is that of a function, and of no op.
  bool HasInsteadOfOp(const std::string& name) const;
  // A node that uses resources has to sit where they are, wherever it is called from.
  bool UsesResources(const tensorflow::NodeDef& node) const;
  // Returns the flat number of the output that is number `index` of the argument `arg` of a node.
  StatusOr<int> OutputIndex(const tensorflow::NodeDef& node, const std::string& arg,
                            int index) const;
  // The names of those of `nodes` that the control flow among them decides about: what depends on a
  // Switch or an Enter. `nodes` are a graph's or those of the body of a function.
  std::set<std::string> NodesInFlow(
      const google::protobuf::RepeatedPtrField<tensorflow::NodeDef>& nodes) const;

 private:
  const Registry& registry_;
  std::map<std::string, const tensorflow::FunctionDef*> functions_;
};

}  // namespace penstock
