// SPDX-License-Identifier: Apache-2.0
//
// StepActivity: what one step does in one executor at this moment, for an operator who asks what it
// waits for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace penstock {

struct StepActivity {
  // A node whose kernel is asynchronous and has not called its Done.
  struct Wait {
    const Node* node = nullptr;  // of the executor's graph
    int64_t since_ns = 0;        // by the Env's clock; 0: not known
    uint64_t iteration = 0;      // of its loop; 0 outside of loops
  };
  // A run of a loop.
  struct Loop {
    std::string name;
    uint64_t iteration = 0;  // the newest
  };

  int64_t step_id = 0;
  // Some thread runs nodes of it.
  bool computing = true;
  // False: the step runs on one thread and nothing of it waits. Its loops are not known then,
  // because that thread changes them without a lock.
  bool shared = false;
  std::vector<Wait> waits;
  std::vector<Loop> loops;
};

}  // namespace penstock
