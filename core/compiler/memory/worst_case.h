// SPDX-License-Identifier: Apache-2.0
//
// WorstPeaks: an upper bound of the memory that a placed step takes if its nodes run in any order
// that its edges allow, some at the same time. MemoryModel::Profile predicts one order, but an
// executor with several threads may choose another.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/compiler/memory/memory_model.h"
#include "core/graph/graph.h"

namespace penstock {

// Returns the bound for each device of the model, in bytes, including tensors from other tasks. It
// is the maximum, over all nodes, of the sum of the buffers that may be in memory while the node
// runs: those whose producer need not wait for the node, and of which a consumer may end after the
// node. `order` is any order in which the nodes may run. The bound leaves out the same memory as
// MemoryModel. For steps with very many large tensors it is the sum of all tensors.
std::vector<double> WorstPeaks(const MemoryModel& model, absl::Span<Node* const> order);

}  // namespace penstock
