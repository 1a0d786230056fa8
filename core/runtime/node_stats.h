// SPDX-License-Identifier: Apache-2.0
//
// Records how a node ran: its cost in the Executable and, in a traced step, a row in the step's
// StepStatsCollector. Also finds the memory of its new outputs for that row. Private to this
// folder. Thread-safe.
#pragma once

#include <vector>

#include "core/runtime/iteration.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_stats.h"

namespace penstock {

// Records that a node, which began at `start_ns` and allocated `memory`, has ended with `outputs`.
// Call this before the node's inputs are released. Returns the nanoseconds that the node took.
int64_t RecordNode(const RunningStep& step, const Iteration& it, const Executable::Item& item,
                   int64_t start_ns, const Tensor* outputs, std::vector<NodeStats::Memory> memory);

// Returns the memory that the outputs occupy, by allocator. Leaves out outputs that share a buffer
// with an input, and foreign memory.
std::vector<NodeStats::Memory> NewOutputs(const Iteration& it, const Executable::Item& item,
                                          const Tensor* outputs);

}  // namespace penstock
