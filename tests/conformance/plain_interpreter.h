// SPDX-License-Identifier: Apache-2.0
//
// PlainInterpreter: runs graphs without the compiler and the executor, as the definition of what a
// graph means: one node after the other in topological order, each kernel alone, on inputs that
// something else holds too, so that no kernel writes over one. Tests compare what the compiler's
// passes have made of a graph with it.
//
// Knows switches and merges, but no loops, references or asynchronous kernels. One thread.
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
  // Variables stay between runs.
  PlainInterpreter();

  // Runs all nodes of a program. A fed output ("x:0") has the value given. Returns the outputs of
  // those names.
  StatusOr<std::vector<Tensor>> Run(const Graph& program,
                                    const std::map<std::string, Tensor>& feeds,
                                    const std::vector<std::string>& fetches);
  // Runs the partitions of a compiled step together: values go from _Send to _Recv.
  StatusOr<std::vector<Tensor>> Run(const std::vector<const Graph*>& partitions,
                                    const std::vector<Tensor>& feeds, int num_fetches);

 private:
  // Null: dead.
  using Value = std::optional<Tensor>;
  struct Step {
    std::map<std::pair<const Node*, int>, Value> values;
    std::map<const Node*, bool> ended;      // true: dead
    std::map<std::string, Value> sent;      // by key
    std::map<std::string, Tensor> by_name;  // fed outputs of a program
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
