// SPDX-License-Identifier: Apache-2.0
//
// StepActivity: describes what one step is doing in one executor now. Reports show it, so that the
// person who runs the cluster can see what the step waits for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace penstock {

struct StepActivity {
  // A node whose kernel is asynchronous and has not called its Done.
  struct Wait {
    const Node* node = nullptr;  // a node of the executor's graph
    int64_t since_ns = 0;        // start of the wait, on the Env's clock; 0: unknown
    uint64_t iteration = 0;      // the iteration of the node's loop; 0 outside of loops
  };
  // A run of a loop.
  struct Loop {
    std::string name;
    uint64_t iteration = 0;  // the newest iteration
  };

  int64_t step_id = 0;
  // True if a thread runs nodes of the step.
  bool computing = true;
  // False if the step runs on one thread and no node waits. `loops` is then empty, because that
  // thread changes the step's loops without a lock.
  bool shared = false;
  std::vector<Wait> waits;
  std::vector<Loop> loops;
};

}  // namespace penstock
