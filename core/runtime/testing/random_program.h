// SPDX-License-Identifier: Apache-2.0
//
// RandomProgram: a random program with branches and loops. Tests run it as a graph, and compare
// with the results of a simple interpreter, which runs one statement after the other. The same seed
// gives the same program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/testing/test_flow.h"

namespace penstock {

class RandomProgram {
 public:
  struct Kinds {
    int expensive = 0, async = 0;  // percentage of the sums
  };
  // Values are numbered in the order of their definition in a block, after the values of enclosing
  // blocks.
  struct Statement {
    enum Kind { kSum, kCond, kFor } kind = kSum;
    std::vector<int> inputs;  // kFor: the limit, then the initial values
    // kSum:
    std::string op;
    Attrs attrs;
    int64_t plus = 0;
    // kCond: two blocks with one result each. kFor: one block; the counter and the loop-carried
    // values come before its own values.
    std::vector<std::vector<Statement>> blocks;
    std::vector<std::vector<int>> results;  // result values of each block
    int64_t parallel_iterations = 1;
    int number = 0;  // the loop's number, unique in the program
  };
  using Block = std::vector<Statement>;

  // The graph has two feeds; it fetches all values that are computed outside of branches and loops.
  RandomProgram(uint32_t seed, Kinds kinds);
  Graph Build(FlowBuilder::FeedForm form = FlowBuilder::kExecutor) const;
  int num_fetches() const;
  std::vector<int64_t> Expected(std::vector<int64_t> feeds) const;

 private:
  Block block_;
};

}  // namespace penstock
