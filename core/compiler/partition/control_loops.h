// SPDX-License-Identifier: Apache-2.0
//
// AddControlLoops: what a loop over several devices needs beside its own nodes (white paper 4.4).
//
// A device knows of a loop only through its own nodes, and a _Recv has no input that would say in
// which iteration it runs. So each device with nodes of the loop gets a small one of the same
// frame: Enter, Merge, Switch, NextIteration around an empty tensor, driven by the value of the
// loop's LoopCond. Its Merge is alive in each iteration that begins, the last one included: what is
// received in the loop waits for it, and so matches what is sent, dead or alive.
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
  // By frame and device, for loops on several devices: what runs there in each iteration.
  std::map<std::pair<int, std::string>, Node*> iterations;
};
// REQUIRES assigned devices. InvalidArgument names loops that no LoopCond drives.
StatusOr<ControlLoops> AddControlLoops(Graph* graph);

}  // namespace penstock
