// SPDX-License-Identifier: Apache-2.0
//
// RandomProgram: branches and loops put together at random, as a graph, and what the plainest
// interpreter there is, which runs one statement after the other, makes of them. For tests: the
// same seed gives the same program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/testing/test_flow.h"

namespace penstock {

class RandomProgram {
 public:
  struct Kinds {
    int expensive = 0, async = 0;  // percent of the sums
  };
  // Values are numbered in the order in which they come up in a block, after those around it.
  struct Statement {
    enum Kind { kSum, kCond, kFor } kind = kSum;
    std::vector<int> inputs;  // kFor: the limit, then the first values
    // kSum:
    std::string op;
    Attrs attrs;
    int64_t plus = 0;
    // kCond: two blocks, each of one result. kFor: one, with counter and values before its own.
    std::vector<std::vector<Statement>> blocks;
    std::vector<std::vector<int>> results;  // of the blocks
    int64_t parallel_iterations = 1;
    int number = 0;  // different for each loop
  };
  using Block = std::vector<Statement>;

  // Takes two feeds; fetches everything that is computed outside of branches and loops.
  RandomProgram(uint32_t seed, Kinds kinds);
  Graph Build(FlowBuilder::Whom whom = FlowBuilder::kExecutor) const;
  int num_fetches() const;
  std::vector<int64_t> Expected(std::vector<int64_t> feeds) const;

 private:
  Block block_;
};

}  // namespace penstock
