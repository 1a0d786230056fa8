// SPDX-License-Identifier: Apache-2.0
//
// Records a node's run in an observed step: its cost, for the executable; everything else, for the
// caller of a traced step. Private to this folder. Thread-safe.
#pragma once

#include <vector>

#include "core/runtime/iteration.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_stats.h"

namespace penstock {

// Notes that a node, which began at `start_ns` and took `memory`, has ended with `outputs`, before
// its inputs are released. Returns the nanoseconds that it took.
int64_t Observe(const RunningStep& step, const Iteration& it, const Executable::Item& item,
                int64_t start_ns, const Tensor* outputs, std::vector<NodeStats::Memory> memory);

// Returns the memory of the outputs, by allocator, without those that are an input passed through.
std::vector<NodeStats::Memory> NewOutputs(const Iteration& it, const Executable::Item& item,
                                          const Tensor* outputs);

}  // namespace penstock
