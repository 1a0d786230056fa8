// SPDX-License-Identifier: Apache-2.0
//
// LoopFrames: finds the loop in which each node of a graph runs. Also functions that recognise
// control-flow and stack ops.
//
// A frame is a loop: the Enter nodes with one `frame_name` lead into it, Exit nodes lead out of it.
// Frames nest; frame 0 contains the nodes outside of loops. An Enter runs in the outer frame, an
// Exit in the frame that it leaves. FindLoopFrames is thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace penstock {

inline FlowOp FlowOpOf(const Node& node) { return node.op().flow; }
inline bool IsStackPush(const Node& node) { return node.op().stack == StackOp::kPush; }
inline bool IsStackPop(const Node& node) { return node.op().stack == StackOp::kPop; }

struct LoopFrame {
  std::string name;
  int parent = -1;
  int64_t parallel_iterations = 1;
  const Node* loop_cond = nullptr;  // the loop's LoopCond; null if it has none
};

struct LoopFrames {
  std::vector<LoopFrame> frames;  // parents before children; [0]: outside of loops
  std::vector<int> of_node;       // by node id: the frame in which it runs
  std::vector<int> of_outputs;    // by node id: the frame of its outputs

  bool any() const { return frames.size() > 1; }
};
// Finds the loops of `graph` and the frame in which each node runs. InvalidArgument names the nodes
// that do not fit into frames: inputs from different loops, an Exit outside of any loop. Cheap for
// a graph without loops.
StatusOr<LoopFrames> FindLoopFrames(const Graph& graph);

}  // namespace penstock
