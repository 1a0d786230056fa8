// SPDX-License-Identifier: Apache-2.0
//
// CriticalPath: shows what a traced step spent its time on. It goes from the step's end back to
// its start, from each event to the one for which this event waited last:
//
//   the last row  <- its wait for a thread  <- its last input  <- ...  <- a _Recv
//                 <- the transfer  <- the _Send, in another task  <- ...  <- the step's start
//
// Every nanosecond of the step belongs to exactly one segment. If the tasks' clocks disagree,
// segments are shortened so that no time counts twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/insight/traced_rows.h"

namespace penstock {

struct PathSegment {
  enum Kind {
    kKernel,    // a node ran
    kWait,      // a node waited for other steps, as ops of queues do
    kQueueing,  // a node was ready, and waited for a thread
    kTransfer,  // a tensor was being transferred
    kGap,       // nothing was recorded: calls between tasks, time between a node and the next one
  };
  Kind kind = kGap;
  // The op of a kernel; "w:0 from /job:ps/task:0" for a transfer; for a gap, the phase of the
  // step.
  std::string what;
  std::string task;  // the task where it happened; for a transfer, the consumer
  int64_t start_ns = 0, end_ns = 0;
  int64_t nanos() const { return end_ns - start_ns; }
};

// Returns the segments in the order of time, without gaps between them. A step without rows is
// one segment of kind gap.
std::vector<PathSegment> CriticalPath(const TracedRows& rows);

}  // namespace penstock
