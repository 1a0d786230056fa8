// SPDX-License-Identifier: Apache-2.0
//
// FunctionExpansion: expands calls, conditionals and loops into nodes and appends them to a
// GraphDef. Only the files of the function inliner use it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/functions/body_frames.h"
#include "core/functions/function_body.h"
#include "core/functions/function_library.h"

namespace tensorflow {
class NameAttrList;
enum DataType : int;
}  // namespace tensorflow

namespace penstock {

class FunctionExpansion {
 public:
  FunctionExpansion(const tensorflow::GraphDef& graph, const Registry& registry, int64_t nodes_max,
                    int64_t bytes_max, tensorflow::GraphDef* out);
  Status Run();

 private:
  // The names and the types of the tensors that a function returns.
  struct ReturnedNodes {
    std::vector<std::string> values;
    std::vector<tensorflow::DataType> types;
  };
  struct Branches;
  struct Loop;

  // Appends the node, or the nodes that replace it. `in_flow`: see FunctionCall.
  Status Expand(const tensorflow::NodeDef& node, bool in_flow, int depth);
  Status ExpandCall(FunctionCall call, int depth, ReturnedNodes* returned = nullptr);
  // Calls SetBegin if a node of the body needs it.
  Status AddBegin(const tensorflow::FunctionDef& function, FunctionCall* call);
  // Sets FunctionCall::begins and appends the node of that name, unless that has been done.
  Status SetBegin(const tensorflow::FunctionDef& function, FunctionCall* call);
  // Adds to `control` the nodes for which the call's results must wait so that `nodes` of the body
  // have run before. (A node on a branch or in a loop has then run, or will not run.) May set
  // FunctionCall::begins. Leaves out nodes of a loop that has no Enter of a loop-carried value, or
  // no LoopCond.
  Status AwaitNodes(const tensorflow::FunctionDef& function, const FunctionBody& body,
                    const std::vector<std::string>& nodes, FunctionCall* call,
                    std::vector<std::string>* control);
  StatusOr<std::string> AwaitInLoop(const BodyFrame& frame, const FunctionBody& body,
                                    const std::string& name, const std::vector<std::string>& nodes);
  Status AddTrigger(const std::string& name, const std::string& device,
                    const std::vector<std::string>& nodes);
  Status ExpandIf(const tensorflow::NodeDef& node, int depth);
  Status ExpandCase(const tensorflow::NodeDef& node, int depth);
  Status ExpandBranches(const tensorflow::NodeDef& node, Branches branches, int depth);
  // Append the parts of an If or a Case, in the order in which ExpandBranches calls them.
  Status AddSwitches(const Branches& branches, const InputNames& inputs);
  StatusOr<ReturnedNodes> AddBranch(const Branches& branches, size_t taken, int depth);
  Status AddMerges(const Branches& branches, const std::vector<ReturnedNodes>& returned);
  Status ExpandWhile(const tensorflow::NodeDef& node, int depth);
  // Append the parts of a While, in the order in which ExpandWhile calls these functions.
  Status AddLoopEntry(const Loop& loop);
  Status AddLoopCondition(const Loop& loop, const tensorflow::NameAttrList& cond, int depth);
  Status AddLoopSwitches(const Loop& loop);
  Status AddLoopBody(const Loop& loop, const tensorflow::NameAttrList& body, int depth);
  static FunctionCall CallInLoop(const Loop& loop, const char* part,
                                 const tensorflow::NameAttrList& function);
  Status ExpandFor(const tensorflow::NodeDef& node, bool in_flow, int depth);
  Status ExpandGradient(const tensorflow::NodeDef& node, bool in_flow, int depth);
  // If `node` is a constant string, stores its value in strings_ under `name`, the node's name in
  // the new graph.
  void NoteString(const tensorflow::NodeDef& node, const std::string& name);
  // Removes the first input of a RemoteCall, a device name, from `inputs`, and returns the device
  // on which the body runs. `device` is the device of the RemoteCall node.
  StatusOr<std::string> TakeTarget(const std::string& device, InputNames* inputs) const;
  // Appends a node whose value a loop without variables carries from iteration to iteration.
  // Returns the value's name.
  StatusOr<std::string> AddLoopToken(const tensorflow::NodeDef& node);

  // InvalidArgument unless the function returns the types that the attribute `attr` names.
  static Status CheckTypes(const char* attr, const std::vector<tensorflow::DataType>& types,
                           const std::string& function, const ReturnedNodes& returned);
  // Appends the node that replaces a call or a functional op. The node has the inputs `values`,
  // which are its outputs, too, and the control inputs `control`.
  Status AddResults(const FunctionCall& call, const std::vector<std::string>& values,
                    const std::vector<tensorflow::DataType>& types,
                    const std::vector<std::string>& control);
  // Appends a node of one of the few ops that replace calls.
  StatusOr<tensorflow::NodeDef*> Add(const std::string& name, const std::string& op,
                                     const std::string& device,
                                     const std::vector<std::string>& inputs,
                                     tensorflow::DataType type);
  Status Append(tensorflow::NodeDef node);

  const tensorflow::GraphDef& graph_;
  FunctionLibrary library_;
  const int64_t nodes_max_;
  const int64_t bytes_max_;
  int64_t bytes_ = 0;                                  // size of the appended nodes
  std::map<std::string, const std::string*> strings_;  // constants, by name in the new graph
  tensorflow::GraphDef& out_;
};

}  // namespace penstock
