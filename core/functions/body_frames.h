// SPDX-License-Identifier: Apache-2.0
//
// BodyFrames: finds the loops in the body of a function that consist of Enter, Exit and similar
// nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/op/registry.h"

namespace tensorflow {
class FunctionDef;
class NodeDef;
}  // namespace tensorflow

namespace penstock {

struct BodyFrame {
  int parent = 0;
  // An Enter of a loop-carried value, and the loop's LoopCond; null if there is none.
  const tensorflow::NodeDef* enter = nullptr;
  const tensorflow::NodeDef* condition = nullptr;
};

// Borrows the function.
class BodyFrames {
 public:
  BodyFrames(const Registry& registry, const tensorflow::FunctionDef& function);

  // Returns all frames. Frame 0 stands for the nodes outside of loops; a loop comes after the loop
  // that contains it.
  const std::vector<BodyFrame>& frames() const { return frames_; }
  // Returns the frame in which a node of the body runs. For an Enter, this is the frame into which
  // it leads; for an Exit, the frame around the loop.
  int FrameOf(const std::string& node) const;

 private:
  void Visit(const tensorflow::NodeDef& node, int from);
  int EnterFrame(const tensorflow::NodeDef& enter, int from);

  const Registry& registry_;
  std::vector<BodyFrame> frames_{1};
  std::map<std::string, int> by_name_;               // by frame_name
  std::map<std::string, int> of_nodes_;              // by node
  std::vector<const tensorflow::NodeDef*> visited_;  // nodes whose consumers have not been visited
};

}  // namespace penstock
