// SPDX-License-Identifier: Apache-2.0
//
// Summarises a trace in a few lines for a terminal: what was recorded, how far the clocks
// disagree, the most expensive nodes and transfers, and the critical path of the median step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "distributed/insight/cluster_trace.h"

namespace penstock {

// The cost of one node or transfer, summed over all steps.
struct TracedCost {
  std::string name;  // "MatMul_1", "w:0 from /job:ps/task:0"
  std::string op;    // "MatMul"; of a transfer: "transfer by shm"
  std::string task;
  int64_t nanos = 0;  // sum over all steps
  int64_t count = 0;
  int64_t bytes = 0;  // sent over the network; 0 for nodes
};

// Returns the costs, the most expensive first. The time of a _Recv is that of its transfer; ops
// that wait for other steps count their waiting time.
std::vector<TracedCost> CostsOf(const ClusterTrace& trace);

// Groups the steps by their fetches and targets, selects the group that took the most time in all,
// and returns its step of median length; null if there is no step.
const ClusterTrace::Step* MedianStep(const ClusterTrace& trace);

// Returns the summary. REQUIRES: the times are aligned, by `clocks`.
std::string TraceText(const ClusterTrace& trace, const std::map<std::string, TaskClock>& clocks,
                      size_t costs_max = 10);

}  // namespace penstock
