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

// The bound for one device.
struct WorstPeak {
  struct Tensor {
    Endpoint value;  // for a copy that an update makes: the variable's handle
    double bytes = 0;
    bool received = false;  // true if it comes from another task
  };
  double bytes = 0;  // tensors from other tasks included
  // A node that runs, or waits to run, when the bound may be reached; null if `bytes` is 0.
  const Node* at = nullptr;
  std::vector<Tensor> tensors = {};  // that may then be in memory; small ones may be missing
};

// Returns the bound for each device of the model. For every node, the bound adds up the buffers
// that may be in memory while the node runs: those whose producer need not wait for the node, and
// of which a consumer may end after the node. `order` is an order in which the nodes may run. What
// MemoryModel does not count is not counted here, either. If a chain of control edges keeps the
// order of the nodes that make and read memory, the bound is the peak of that order. For steps
// with very many large tensors, the order of nodes outside of the longest chain counts as unknown.
std::vector<WorstPeak> WorstPeaks(const MemoryModel& model, absl::Span<Node* const> order);

}  // namespace penstock
