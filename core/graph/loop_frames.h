// SPDX-License-Identifier: Apache-2.0
//
// Control flow as ops: what Switch, Merge and the loop ops do to the structure of a graph; and
// LoopFrames: which loop each node runs in.
//
// A frame is what the Enter nodes of one `frame_name` lead into and Exit nodes lead out of. Frames
// nest; frame 0 is what lies outside of all loops. An Enter runs in the frame it comes from, an
// Exit in the one it leaves. Thread-safe (values).
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
  const Node* loop_cond = nullptr;  // or null
};

struct LoopFrames {
  std::vector<LoopFrame> frames;  // parents before their children; [0]: outside of loops
  std::vector<int> of_node;       // by node id: where it runs
  std::vector<int> of_outputs;    // by node id: where its outputs are

  bool any() const { return frames.size() > 1; }
};
// InvalidArgument names the nodes that do not fit into frames: inputs from different loops, an Exit
// outside of any. Cheap for a graph without loops.
StatusOr<LoopFrames> FindLoopFrames(const Graph& graph);

}  // namespace penstock
