// SPDX-License-Identifier: Apache-2.0
//
// Runner: a thread at work in a step, and the nodes that it is to run. Private to this folder.
//
// A thread works in one iteration at a time. Nodes that become ready there go to `cheap` and
// `expensive`; nodes of other iterations are noted in `elsewhere`.
// Ownership: StepThreads owns the runners of a step. Threads: one thread uses a runner at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/op/kernel.h"
#include "core/runtime/iteration.h"
#include "core/runtime/step_stats.h"

namespace penstock {

class StepThreads;

// A node whose inputs have all come. It holds its iteration.
struct ReadyNode {
  Iteration* iteration;
  uint32_t node;  // index | Executable::kDead | Executable::kExpensive
};

// Nodes to run, in the form of ReadyNode::node.
struct ReadyQueues {
  Iteration* here = nullptr;         // where `cheap` and `expensive` are; null: nowhere
  std::vector<uint32_t> cheap;       // last in, first out: their inputs are still in the cache
  std::vector<uint32_t> expensive;   // may go to another thread
  std::vector<ReadyNode> elsewhere;  // in other iterations

  // Adds a node of `here`.
  void Add(uint32_t node) {
    const bool is_expensive = (node & Executable::kExpensive) != 0;
    (is_expensive ? expensive : cheap).push_back(node & ~Executable::kExpensive);
  }
  // Nodes of a step that ends early; their holds are reset with the iterations.
  void Drop() {
    cheap.clear();
    expensive.clear();
    elsewhere.clear();
  }
};

struct Runner {
  // `iteration` is held by the caller, who leaves that hold to the runner.
  void WorkIn(Iteration& iteration) {
    ready.here = &iteration;
    params.frame = iteration.frame_id;
    params.iteration = iteration.number;
  }

  const StepThreads* threads = nullptr;  // of the step
  ReadyQueues ready;
  std::unique_ptr<Tensor[]> outputs;  // of the node being run; empty between nodes
  KernelContext::Params params;
  std::vector<NodeStats::Memory> memory;  // of the node that has run, in traced steps
  bool yields = false;                    // gives its thread to others when its slice has ended
  int64_t slice_end_ns = 0;               // 0: not known before the clock is looked at
  int nodes_to_clock = 0;                 // until the clock is looked at
};

}  // namespace penstock
