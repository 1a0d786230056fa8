// SPDX-License-Identifier: Apache-2.0
//
// Runner: the state of a thread that works in a step, with its ready nodes. Private to this folder.
//
// A thread works in one iteration at a time. Nodes that become ready in this iteration go to
// `cheap` and `expensive`; nodes of other iterations go to `other_iterations`.
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

// A node whose inputs have all arrived. It has a hold on its iteration (iteration.h).
struct ReadyNode {
  Iteration* iteration;
  uint32_t node;  // index | Executable::kDead | Executable::kExpensive
};

// Ready nodes, in the form of ReadyNode::node.
struct ReadyQueues {
  Iteration* here = nullptr;        // the iteration of `cheap` and `expensive`; null: none
  std::vector<uint32_t> cheap;      // last in, first out: their inputs are still in the cache
  std::vector<uint32_t> expensive;  // other threads may take them
  std::vector<ReadyNode> other_iterations;  // nodes in other iterations

  // Adds a node of the iteration `here`.
  void Add(uint32_t node) {
    const bool is_expensive = (node & Executable::kExpensive) != 0;
    (is_expensive ? expensive : cheap).push_back(node & ~Executable::kExpensive);
  }
  // Drops the nodes of a step that ends early. Their holds are dropped when the step's iterations
  // are reset.
  void Drop() {
    cheap.clear();
    expensive.clear();
    other_iterations.clear();
  }
};

struct Runner {
  // Makes `iteration` the one in which the thread works. Takes over a hold of the caller on it.
  void WorkIn(Iteration& iteration) {
    ready.here = &iteration;
    params.frame = iteration.frame_id;
    params.iteration = iteration.number;
  }

  const StepThreads* threads = nullptr;  // the step's threads
  ReadyQueues ready;
  std::unique_ptr<Tensor[]> outputs;  // the running node's outputs; empty between nodes
  KernelContext::Params params;
  std::vector<NodeStats::Memory> memory;  // in traced steps: what the last node allocated
  bool yields = false;                    // lets other closures use its thread after each slice
  int64_t slice_end_ns = 0;               // 0: set it when the runner next reads the clock
  int nodes_to_clock = 0;                 // nodes to run before the runner reads the clock again
};

}  // namespace penstock
