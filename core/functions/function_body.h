// SPDX-License-Identifier: Apache-2.0
//
// FunctionBody: copies the body of a function for one call, and replaces the body's names,
// arguments and attributes by those of the call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/functions/function_library.h"

namespace google::protobuf {
template <class Key, class T>
class Map;
}  // namespace google::protobuf

namespace tensorflow {
class AttrValue;
}  // namespace tensorflow

namespace penstock {

using AttrMap = google::protobuf::Map<std::string, tensorflow::AttrValue>;

// The data inputs and the control inputs of a node. Control inputs are without their "^".
struct InputNames {
  explicit InputNames(const tensorflow::NodeDef& node);
  InputNames() = default;
  std::vector<std::string> data, control;
};

// One call of a function.
struct FunctionCall {
  std::string name;  // name of the call's node, and prefix of the names of the body's nodes
  std::string device;
  std::string function;
  const AttrMap* attrs = nullptr;  // the values of the function's parameters
  InputNames inputs;
  // True if the call is in a loop or on a branch. There, a node without inputs must wait for
  // another node.
  bool in_flow = false;
  // If in_flow is true and the call has no control inputs: the node for which the body's nodes
  // without inputs wait. Empty: none.
  std::string begins = "";
  // True if the call waits for the nodes of the body that must run even if no node uses their
  // results.
  bool keeps_effects = true;
};

// Returns true if `node` waits for no other node of the body: it has no inputs, or only control
// edges from `arguments` of the function, which have run before the call.
bool HasNoSource(const tensorflow::NodeDef& node, const std::set<std::string>& arguments);

// Borrows its three arguments.
class FunctionBody {
 public:
  FunctionBody(const FunctionLibrary& library, const FunctionCall& call,
               const tensorflow::FunctionDef& function);

  // Finds the call's input for each argument of the function. InvalidArgument if the numbers of
  // inputs and arguments differ; Unimplemented for an argument of several tensors. Call this before
  // the other functions.
  Status BindArguments();
  std::string Rename(const std::string& node) const;
  // Returns the name that a tensor of the body has in the new graph.
  StatusOr<std::string> RenameTensor(const std::string& text) const;
  // Returns a copy of a node of the body for the new graph.
  StatusOr<tensorflow::NodeDef> Copy(const tensorflow::NodeDef& node) const;

 private:
  void RenameFrame(tensorflow::NodeDef* node) const;

  const FunctionLibrary& library_;
  const FunctionCall& call_;
  const tensorflow::FunctionDef& function_;
  std::map<std::string, std::string> arguments_;  // key: argument; value: the call's input
  std::map<std::string, const tensorflow::NodeDef*> nodes_;
  std::set<std::string> names_;
};

}  // namespace penstock
