// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/partition/control_loops.h"

#include <set>
#include <vector>

namespace penstock {
namespace {

class ControlLoopAdder {
 public:
  ControlLoopAdder(Graph* graph, ControlLoops* loops) : graph_(*graph), loops_(*loops) {}

  Status Run() {
    const LoopFrames& frames = loops_.frames;
    std::vector<std::set<std::string>> devices(frames.frames.size());
    for (const Node* node : graph_.nodes()) {
      devices[frames.of_node[node->id()]].insert(node->assigned_device());
      devices[frames.of_outputs[node->id()]].insert(node->assigned_device());
    }
    // On each device, an iteration of the outer loop begins the inner loop. So the outer loop needs
    // a control loop on each device of the inner loop.
    for (int frame = static_cast<int>(devices.size()) - 1; frame > 0; --frame) {
      devices[frames.frames[frame].parent].insert(devices[frame].begin(), devices[frame].end());
    }
    for (int frame = 1; frame < static_cast<int>(devices.size()); ++frame) {
      if (devices[frame].size() < 2) continue;
      for (const std::string& device : devices[frame]) RETURN_IF_ERROR(Add(frame, device));
    }
    return OkStatus();
  }

 private:
  Status Add(int frame, const std::string& device) {
    const LoopFrame& loop = loops_.frames.frames[frame];
    if (loop.loop_cond == nullptr) {
      return InvalidArgument("loop '", loop.name, "' is spread over several devices, among them ",
                             device, ", but has no LoopCond to drive it there");
    }
    ASSIGN_OR_RETURN(Node * begin, LoopStart(loop, device));
    const Attrs type = {{"T", DType::kFloat}};
    Attrs enter = type;
    enter["frame_name"] = loop.name;
    enter["parallel_iterations"] = loop.parallel_iterations;
    ASSIGN_OR_RETURN(Node * entered,
                     AddNode("Enter", {{begin, 0}}, enter, loop.parent, frame, device));
    Attrs two = type;
    two["N"] = 2;
    ASSIGN_OR_RETURN(Node * merge, AddNode("Merge", {{entered, 0}, {}}, two, frame, frame, device));
    const Endpoint condition{graph_.node(loop.loop_cond->id()), 0};
    ASSIGN_OR_RETURN(Node * choice,
                     AddNode("Switch", {{merge, 0}, condition}, type, frame, frame, device));
    ASSIGN_OR_RETURN(Node * next,
                     AddNode("NextIteration", {{choice, 1}}, type, frame, frame, device));
    loops_.iterations[{frame, device}] = merge;
    return graph_.SetInput(merge, 1, {next, 0});
  }

  // Returns the node that begins the loop on `device`. The node runs once per iteration of the loop
  // around this one.
  StatusOr<Node*> LoopStart(const LoopFrame& loop, const std::string& device) {
    if (loop.parent != 0) return loops_.iterations.at({loop.parent, device});
    Node*& token = tokens_[device];
    if (token == nullptr) {
      const Tensor empty(DType::kFloat, Shape({0}));
      ASSIGN_OR_RETURN(
          token, AddNode("Const", {}, {{"dtype", DType::kFloat}, {"value", empty}}, 0, 0, device));
    }
    return token;
  }

  StatusOr<Node*> AddNode(const char* op, std::vector<Endpoint> inputs, Attrs attrs, int frame,
                          int frame_of_outputs, const std::string& device) {
    ASSIGN_OR_RETURN(Node * node, graph_.AddNode({.name = graph_.UniqueName(StrCat("_loop_", op)),
                                                  .op = op,
                                                  .inputs = std::move(inputs),
                                                  .attrs = std::move(attrs),
                                                  .device = device}));
    graph_.set_assigned_device(node, device);
    loops_.frames.of_node.resize(graph_.max_id());
    loops_.frames.of_outputs.resize(graph_.max_id());
    loops_.frames.of_node[node->id()] = frame;
    loops_.frames.of_outputs[node->id()] = frame_of_outputs;
    return node;
  }

  Graph& graph_;
  ControlLoops& loops_;
  std::map<std::string, Node*> tokens_;  // by device
};

}  // namespace

StatusOr<ControlLoops> AddControlLoops(Graph* graph) {
  ControlLoops loops;
  ASSIGN_OR_RETURN(loops.frames, FindLoopFrames(*graph));
  RETURN_IF_ERROR(ControlLoopAdder(graph, &loops).Run());
  return loops;
}

}  // namespace penstock
