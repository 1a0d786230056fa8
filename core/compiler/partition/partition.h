// SPDX-License-Identifier: Apache-2.0
//
// Partition: the result of the compiler and the input of the runtime. It holds the nodes of a graph
// that run on one device, with _Send and _Recv nodes where edges were cut, and _Feed and _Fetch
// nodes where tensors enter and leave the step.
//
// A feed is a node of op "_Feed" with attributes index, T: its output is the step's index-th feed.
// A fetch is a node of op "_Fetch" with attributes index, T: it stores its input as the step's
// index-th result. Indices are positions in CompileOptions::feeds and fetches. A partition has only
// the _Feed and _Fetch nodes of its device.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace penstock {

struct Partition {
  std::string device;  // full name
  Graph graph;
};

}  // namespace penstock
