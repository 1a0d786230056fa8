// SPDX-License-Identifier: Apache-2.0
#include "core/functions/body_frames.h"

#include <utility>

#include "core/functions/function_body.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using NodeProto = tensorflow::NodeDef;

namespace {

FlowOp FlowOf(const Registry& registry, const NodeProto& node) {
  const OpDef* const op = registry.FindOp(node.op());
  return op == nullptr ? FlowOp::kNone : op->flow;
}

bool IsConstant(const NodeProto& enter) {
  const auto constant = enter.attr().find("is_constant");
  return constant != enter.attr().end() && constant->second.b();
}

}  // namespace

// Visits the nodes from sources to consumers. It starts with the nodes that have no source in the
// body. All inputs of a node are in one frame, so the first visited input determines the node's
// frame.
BodyFrames::BodyFrames(const Registry& registry, const tensorflow::FunctionDef& function)
    : registry_(registry) {
  std::set<std::string> arguments;
  for (const auto& arg : function.signature().input_arg()) arguments.insert(arg.name());
  std::map<std::string, std::vector<const NodeProto*>> consumers;
  for (const NodeProto& node : function.node_def()) {
    const InputNames inputs(node);
    bool first = true;
    for (const std::string& input : inputs.data) {
      const std::string source = input.substr(0, input.find(':'));
      consumers[source].push_back(&node);
      first &= arguments.contains(source);
    }
    for (const std::string& before : inputs.control) {
      consumers[before].push_back(&node);
      first &= arguments.contains(before);
    }
    if (first) Visit(node, 0);
  }
  while (!visited_.empty()) {
    const NodeProto& node = *visited_.back();
    visited_.pop_back();
    for (const NodeProto* const consumer : consumers[node.name()]) {
      Visit(*consumer, of_nodes_.at(node.name()));
    }
  }
}

int BodyFrames::FrameOf(const std::string& node) const {
  const auto found = of_nodes_.find(node);
  return found == of_nodes_.end() ? 0 : found->second;
}

// `from` is the frame of one of the node's inputs.
void BodyFrames::Visit(const NodeProto& node, int from) {
  if (of_nodes_.contains(node.name())) return;
  const FlowOp flow = FlowOf(registry_, node);
  int frame = from;
  if (flow == FlowOp::kEnter) frame = EnterFrame(node, from);
  if (flow == FlowOp::kExit) frame = frames_[from].parent;
  if (flow == FlowOp::kLoopCond) frames_[frame].condition = &node;
  of_nodes_.emplace(node.name(), frame);
  visited_.push_back(&node);
}

int BodyFrames::EnterFrame(const NodeProto& enter, int from) {
  const auto name = enter.attr().find("frame_name");
  if (name == enter.attr().end()) return from;
  const auto [found, is_new] =
      by_name_.try_emplace(name->second.s(), static_cast<int>(frames_.size()));
  if (is_new) frames_.push_back({.parent = from});
  BodyFrame& frame = frames_[found->second];
  if (enter.op() == "Enter" && !IsConstant(enter) && frame.enter == nullptr) frame.enter = &enter;
  return found->second;
}

}  // namespace penstock
