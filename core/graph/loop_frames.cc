// SPDX-License-Identifier: Apache-2.0
#include "core/graph/loop_frames.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error_origin.h"

namespace penstock {
namespace {

class FrameFinder {
 public:
  explicit FrameFinder(const Graph& graph) : graph_(graph) {
    found_.frames.emplace_back();
    found_.of_node.assign(graph.max_id(), 0);
    found_.of_outputs.assign(graph.max_id(), 0);
  }

  StatusOr<LoopFrames> Run() {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (const Node* node : order) {
      if (FlowOpOf(*node) == FlowOp::kEnter) return AssignFrames(order);
    }
    for (const Node* node : order) {
      const FlowOp op = FlowOpOf(*node);
      if (op == FlowOp::kExit || op == FlowOp::kNextIteration) return OutsideOfLoops(*node);
    }
    return std::move(found_);
  }

 private:
  StatusOr<LoopFrames> AssignFrames(const std::vector<Node*>& order) {
    for (const Node* node : order) {
      ASSIGN_OR_RETURN(const int frame, FrameOfInputs(*node));
      found_.of_node[node->id()] = frame;
      ASSIGN_OR_RETURN(found_.of_outputs[node->id()], FrameOfOutputs(*node, frame));
    }
    for (const Node* node : order) {
      if (FlowOpOf(*node) == FlowOp::kNextIteration) RETURN_IF_ERROR(CheckBackEdges(*node));
    }
    return std::move(found_);
  }

  StatusOr<int> FrameOfInputs(const Node& node) {
    const Node* first = nullptr;
    const auto check = [&](const Node* input) -> Status {
      if (first == nullptr) first = input;
      if (OutputsOf(*input) == OutputsOf(*first)) return OkStatus();
      return InvalidArgument("The node '", node.name(), "' has inputs from different frames. The ",
                             "input '", first->name(), "' is ", Where(OutputsOf(*first)),
                             ". The input '", input->name(), "' is ", Where(OutputsOf(*input)),
                             ".");
    };
    for (const Endpoint& input : node.inputs()) {
      if (input.node == nullptr || IsLoopBackEdge(*input.node, node)) continue;
      RETURN_IF_ERROR(check(input.node));
    }
    for (const Node* input : node.control_inputs()) RETURN_IF_ERROR(check(input));
    return first == nullptr ? 0 : OutputsOf(*first);
  }

  StatusOr<int> FrameOfOutputs(const Node& node, int frame) {
    switch (FlowOpOf(node)) {
      case FlowOp::kEnter:
        return Enter(node, frame);
      case FlowOp::kExit:
        if (frame == 0) return OutsideOfLoops(node);
        return found_.frames[frame].parent;
      case FlowOp::kNextIteration:
        if (frame == 0) return OutsideOfLoops(node);
        return frame;
      case FlowOp::kLoopCond: {
        const Node*& cond = found_.frames[frame].loop_cond;
        if (frame != 0 && cond != nullptr) {
          return InvalidArgument("loop '", found_.frames[frame].name, "' has two LoopConds: '",
                                 cond->name(), "' and '", node.name(), "'");
        }
        cond = &node;
        return frame;
      }
      default:
        return frame;
    }
  }

  StatusOr<int> Enter(const Node& node, int from) {
    const std::string* const name = node.attr<std::string>("frame_name");
    const int64_t* const parallel = node.attr<int64_t>("parallel_iterations");
    if (name == nullptr || name->empty()) {
      return InNode(InvalidArgument("an Enter needs a frame_name"), node.name());
    }
    const auto [it, is_new] = by_name_.try_emplace(*name, static_cast<int>(found_.frames.size()));
    if (is_new) found_.frames.push_back({.name = *name, .parent = from});
    LoopFrame& frame = found_.frames[it->second];
    if (frame.parent != from) {
      return WithNode(
          InvalidArgument("node '", node.name(), "' enters loop '", *name, "', being ", Where(from),
                          "; other Enters of that loop are ", Where(frame.parent)),
          node.name());
    }
    if (parallel != nullptr) {
      frame.parallel_iterations = std::max(frame.parallel_iterations, *parallel);
    }
    return it->second;
  }

  // Checks that a loop-carried value goes to a Merge, the only node that takes it to the next
  // iteration.
  Status CheckBackEdges(const Node& node) {
    for (const OutEdge& edge : node.out_edges()) {
      if (IsLoopBackEdge(node, *edge.dst) &&
          found_.of_node[edge.dst->id()] == found_.of_node[node.id()]) {
        continue;
      }
      return InvalidArgument("'", node.name(), "' (", node.op_name(), ") must lead to a Merge of ",
                             "its own loop, not to '", edge.dst->name(), "'");
    }
    if (node.control_outputs().empty()) return OkStatus();
    return InvalidArgument("'", node.name(), "' (", node.op_name(), ") must lead to a Merge of ",
                           "its own loop, not to '^", node.control_outputs()[0]->name(), "'");
  }

  static Status OutsideOfLoops(const Node& node) {
    return InvalidArgument("'", node.name(), "' (", node.op_name(), ") is outside of any loop");
  }
  int OutputsOf(const Node& node) const { return found_.of_outputs[node.id()]; }
  std::string Where(int frame) const {
    return frame == 0 ? "outside of loops" : StrCat("in frame '", found_.frames[frame].name, "'");
  }

  const Graph& graph_;
  LoopFrames found_;
  std::map<std::string, int> by_name_;
};

}  // namespace

StatusOr<LoopFrames> FindLoopFrames(const Graph& graph) { return FrameFinder(graph).Run(); }

}  // namespace penstock
