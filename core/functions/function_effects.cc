// SPDX-License-Identifier: Apache-2.0
//
// Makes a call wait for nodes of its body that are on branches or in loops made of Switch and
// Enter.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/functions/body_frames.h"
#include "core/functions/function_expansion.h"
#include "core/functions/functional_node.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

// A call cannot wait by a control edge for a node that may be dead, because the call would then be
// dead, too. Instead it waits for a ControlTrigger, which runs when each of its inputs has run or
// is dead.
Status FunctionExpansion::AwaitNodes(const FunctionProto& function, const FunctionBody& body,
                                     const std::vector<std::string>& nodes, FunctionCall* call,
                                     std::vector<std::string>* control) {
  if (nodes.empty()) return OkStatus();
  const std::set<std::string> in_flow = library_.NodesInFlow(function.node_def());
  std::vector<std::string> flow_nodes;
  for (const std::string& node : nodes) {
    if (in_flow.contains(node)) {
      flow_nodes.push_back(node);
    } else {
      control->push_back(body.Rename(node));
    }
  }
  if (flow_nodes.empty()) return OkStatus();
  // The trigger runs even if the call is on a branch that is not taken. The call must not run then,
  // so it also needs a node of its branch to wait for.
  if (call->in_flow && call->inputs.control.empty() && !call->inputs.data.empty()) {
    RETURN_IF_ERROR(SetBegin(function, call));
    control->push_back(call->begins);
  }
  const BodyFrames frames(library_.registry(), function);
  std::vector<std::vector<std::string>> awaited(frames.frames().size());  // by frame
  for (const std::string& node : flow_nodes) {
    awaited[frames.FrameOf(node)].push_back(body.Rename(node));
  }
  for (size_t i = awaited.size() - 1; i > 0; --i) {
    const BodyFrame& frame = frames.frames()[i];
    if (awaited[i].empty() || frame.enter == nullptr || frame.condition == nullptr) continue;
    const std::string name = StrCat(call->name, "/_effects_", i);
    ASSIGN_OR_RETURN(std::string exit, AwaitInLoop(frame, body, name, awaited[i]));
    awaited[frame.parent].push_back(std::move(exit));
  }
  if (awaited[0].empty()) return OkStatus();
  control->push_back(StrCat(call->name, "/_effects"));
  return AddTrigger(control->back(), call->device, awaited[0]);
}

// Appends a loop-carried value that leaves the loop when `nodes` have run in all iterations.
// Returns the name of its Exit.
//
//   the loop's Enter, copied ─► merge ─► Switch ─► exit
//                                 ▲      ▲   │
//                                 │  trigger │
//                                 └── next ◄─┘
//
// The Merge leads to the Switch directly, as core/gradients requires.
StatusOr<std::string> FunctionExpansion::AwaitInLoop(const BodyFrame& frame,
                                                     const FunctionBody& body,
                                                     const std::string& name,
                                                     const std::vector<std::string>& nodes) {
  ASSIGN_OR_RETURN(const NodeProto condition, body.Copy(*frame.condition));
  ASSIGN_OR_RETURN(NodeProto enter, body.Copy(*frame.enter));
  const std::string& device = condition.device();
  const auto part = [&](const char* part) { return StrCat(name, "/", part); };
  const auto type_attr = enter.attr().find("T");
  if (type_attr == enter.attr().end()) {
    return InvalidArgument("node '", enter.name(), "' has no attribute 'T'");
  }
  const tensorflow::DataType type = type_attr->second.type();
  enter.set_name(part("enter"));
  enter.set_device(device);
  enter.mutable_attr()->erase("_class");
  RETURN_IF_ERROR(Append(std::move(enter)));
  ASSIGN_OR_RETURN(NodeProto* const merge,
                   Add(part("merge"), "Merge", device, {part("enter"), part("next")}, type));
  (*merge->mutable_attr())["N"].set_i(2);
  RETURN_IF_ERROR(AddTrigger(part("trigger"), device, nodes));
  RETURN_IF_ERROR(Add(part("switch"), "Switch", device,
                      {part("merge"), condition.name(), Control(part("trigger"))}, type)
                      .status());
  RETURN_IF_ERROR(
      Add(part("next"), "NextIteration", device, {Output(part("switch"), 1)}, type).status());
  RETURN_IF_ERROR(Add(part("exit"), "Exit", device, {part("switch")}, type).status());
  return part("exit");
}

Status FunctionExpansion::AddTrigger(const std::string& name, const std::string& device,
                                     const std::vector<std::string>& nodes) {
  std::vector<std::string> inputs;
  for (const std::string& node : nodes) inputs.push_back(Control(node));
  return Add(name, "ControlTrigger", device, inputs, tensorflow::DT_INVALID).status();
}

}  // namespace penstock
