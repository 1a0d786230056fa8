// SPDX-License-Identifier: Apache-2.0
//
// WorstPeaks: a bound of the memory that a placed step takes if its nodes run in any order, and at
// the same time, as far as its edges allow. MemoryModel::Profile tells of one order; an executor
// with several threads may run the nodes in another one.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/compiler/memory/memory_model.h"
#include "core/graph/graph.h"

namespace penstock {

// Returns the bound for each device of the model, in bytes, tensors from other tasks included. It
// considers every node in turn: each buffer counts that may be in memory when this node runs, which
// is one whose maker does not have to wait for the node, and that some node may still need. `order`
// is an order in which the nodes may run. The limits of MemoryModel hold here, too. For steps with
// very many large tensors the bound is the sum of all tensors.
std::vector<double> WorstPeaks(const MemoryModel& model, absl::Span<Node* const> order);

}  // namespace penstock
