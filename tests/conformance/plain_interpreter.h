// SPDX-License-Identifier: Apache-2.0
//
// PlainInterpreter: runs graphs without the compiler and the executor, and so defines the correct
// results of a graph. It runs one node after the other, in topological order. While a kernel runs,
// the interpreter holds a reference to each input, so that the kernel does not reuse the input's
// buffer. Tests compare its results with those of compiled graphs.
//
// Supports switches and merges, but no loops, ref edges or asynchronous kernels. Single-threaded.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"

namespace penstock {

class PlainInterpreter {
 public:
  // Variables keep their values between runs.
  PlainInterpreter();

  // Runs all nodes of a graph. The outputs in `feeds` ("x:0") have the given values. Returns the
  // outputs named by `fetches`.
  StatusOr<std::vector<Tensor>> Run(const Graph& program,
                                    const std::map<std::string, Tensor>& feeds,
                                    const std::vector<std::string>& fetches);
  // Runs the partitions of a compiled step together, and passes values from _Send to _Recv.
  StatusOr<std::vector<Tensor>> Run(const std::vector<const Graph*>& partitions,
                                    const std::vector<Tensor>& feeds, int num_fetches);

 private:
  // A value; nullopt: a dead value.
  using Value = std::optional<Tensor>;
  struct Step {
    std::map<std::pair<const Node*, int>, Value> values;
    std::map<const Node*, bool> ended;      // by node: true if its outputs are dead
    std::map<std::string, Value> sent;      // by key
    std::map<std::string, Tensor> by_name;  // the fed outputs
    std::vector<Tensor> feeds, fetches;
    ResourceStore resources;
  };

  Status RunAll(const std::vector<const Graph*>& graphs, Step* step);
  // Returns false if the node has to wait.
  static bool IsReady(const Node& node, const Step& step);
  Status RunNode(const Node& node, Step* step);
  StatusOr<std::vector<Value>> Outputs(const Node& node, std::vector<Value> inputs, bool dead,
                                       Step* step);
  StatusOr<std::vector<Value>> RunKernel(const Node& node, const std::vector<Value>& inputs,
                                         Step* step);

  ThreadPool threads_{"plain", 1};
  std::shared_ptr<ResourceStore> variables_;
};

}  // namespace penstock
