// SPDX-License-Identifier: Apache-2.0
//
// AddControlLoops: adds the control nodes that a loop over several devices needs (white paper 4.4).
//
// A device has only some of a loop's nodes, and a _Recv has no input that tells it in which
// iteration it runs. So each device with nodes of the loop gets a small control loop in the same
// frame: Enter, Merge, Switch and NextIteration carry an empty tensor from iteration to iteration,
// controlled by the value of the loop's LoopCond. The Merge has a live value in each iteration that
// begins, the last one included. Each _Recv of the loop has a control edge from this Merge, so that
// it receives every value that is sent, dead or live, exactly once.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/graph/loop_frames.h"

namespace penstock {

struct ControlLoops {
  LoopFrames frames;
  // By frame and device: the Merge of the control loop, which runs once per iteration.
  std::map<std::pair<int, std::string>, Node*> iterations;
};
// Adds the control loops to `graph`. REQUIRES: every node has an assigned device. InvalidArgument
// names a loop on several devices that has no LoopCond.
StatusOr<ControlLoops> AddControlLoops(Graph* graph);

}  // namespace penstock
