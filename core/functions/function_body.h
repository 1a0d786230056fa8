// SPDX-License-Identifier: Apache-2.0
//
// The body of a function as one call of it sees it: names, arguments and attributes of the new
// graph in the place of the function's own.
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

// Data inputs and control inputs of a node, apart. Control inputs are without their "^".
struct InputNames {
  explicit InputNames(const tensorflow::NodeDef& node);
  InputNames() = default;
  std::vector<std::string> data, control;
};

// One call, wherever it comes from.
struct FunctionCall {
  std::string name;  // of the node that stands for it, and in front of the names of its body
  std::string device;
  std::string function;
  const AttrMap* attrs = nullptr;  // of the function's own parameters
  InputNames inputs;
  // Whether it is in a loop or on a branch, where a node without inputs must wait for something
  // that is there, too.
  bool in_flow = false;
  // For a call in_flow without control inputs: the node that nodes without inputs wait for. Empty:
  // none.
  std::string begins = "";
};

// True for a node that nothing orders: it has no inputs, or only control edges from arguments of
// the function (`arguments`), for which the call has waited.
bool HasNoSource(const tensorflow::NodeDef& node, const std::set<std::string>& arguments);

// Borrows all three.
class FunctionBody {
 public:
  FunctionBody(const FunctionLibrary& library, const FunctionCall& call,
               const tensorflow::FunctionDef& function);

  // To be called first.
  Status BindArguments();
  std::string Rename(const std::string& node) const;
  // Returns the name that a tensor of the body has in the new graph.
  StatusOr<std::string> RenameTensor(const std::string& text) const;
  // A node of the body as a node of the new graph.
  StatusOr<tensorflow::NodeDef> Copy(const tensorflow::NodeDef& node) const;

 private:
  const FunctionLibrary& library_;
  const FunctionCall& call_;
  const tensorflow::FunctionDef& function_;
  std::map<std::string, std::string> arguments_;  // by name: what the call gives for them
  std::map<std::string, const tensorflow::NodeDef*> nodes_;
  std::set<std::string> names_;
};

}  // namespace penstock
