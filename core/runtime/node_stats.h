// SPDX-License-Identifier: Apache-2.0
//
// Records how a node ran: its cost, for the executable; in a traced step also a row of its
// StepStatsCollector. Private to this folder. Thread-safe.
#pragma once

#include <vector>

#include "core/runtime/iteration.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_stats.h"

namespace penstock {

// Records that a node, which began at `start_ns` and allocated `memory`, has ended with `outputs`.
// Call it before its inputs are released. Returns the nanoseconds that the node took.
int64_t Observe(const RunningStep& step, const Iteration& it, const Executable::Item& item,
                int64_t start_ns, const Tensor* outputs, std::vector<NodeStats::Memory> memory);

// Returns the memory of the outputs, by allocator. Leaves out inputs that were passed through, and
// foreign memory.
std::vector<NodeStats::Memory> NewOutputs(const Iteration& it, const Executable::Item& item,
                                          const Tensor* outputs);

}  // namespace penstock
