// SPDX-License-Identifier: Apache-2.0
//
// Writes a trace as a file that https://ui.perfetto.dev or chrome://tracing shows as a picture.
//
//   steps                    a lane for each master: its steps
//   a process for each task  lanes "CPU:0 thread 3": nodes that ran
//                            "CPU:0 waits": ops of queues and the like, which wait for others
//                            "CPU:0 queueing": nodes that were ready, and waited for a thread
//                            "receives": tensors that were being sent, with bytes and transport; an
//                            arrow comes from the node that sent each
#pragma once

#include <map>
#include <string>

#include "distributed/insight/cluster_trace.h"

namespace penstock {

// Returns the file. The name of each process shows the offset of its clock, from `clocks`.
// REQUIRES: the times are aligned, by `clocks`.
std::string TraceTimeline(const ClusterTrace& trace,
                          const std::map<std::string, TaskClock>& clocks);

}  // namespace penstock
