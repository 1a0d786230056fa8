// SPDX-License-Identifier: Apache-2.0
//
// Ops for tests and benchmarks of executors and of whole steps, and helpers that make executors.
// Linking this file registers:
//
//   TestSum      the sum of N int64 scalars, plus the attribute `plus`
//   TestSpin     as TestSum, but first keeps its thread busy for `micros` microseconds
//   TestAsync    as TestSum, but ends later on another thread or, if `inline`, at once
//   TestFail     fails with InvalidArgument and `message`
//   TestForget   does not set its output
//   TestWrong    sets its output to a float
//   TestStall    waits until the step is cancelled, then ends with the cancellation's status
//   TestThrow    throws std::bad_alloc
//   TestAlias    returns its input, and whether the kernel could have written to it in place
//   TestVariable a reference to the int64 variable `name`
//   TestLess     x < y
//   TestOdd      whether x is odd
//   TestLow      x & 3
//   TestHalf     x / 2
//   TestSleep    as TestSum, but ends a millisecond later and blocks no thread meanwhile
//   TestPass     its input, of any type
//   TestWhere    x + the number of the iteration; the second output is the frame
//   TestAssign   assigns its second input to the variable behind its first input, a reference
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/runtime/executor.h"

namespace penstock {

// Waits until at least `count` kernels of TestStall wait in this process. Returns false if fewer
// wait after 30 seconds.
bool AwaitStalled(int64_t count = 1);

// The device, the threads and the timer that all executors in these tests share.
struct TestTask {
  explicit TestTask(int num_threads = 2);
  std::unique_ptr<Executor> Make(Graph graph);
  StatusOr<std::unique_ptr<Executor>> TryMake(Graph graph);

  std::unique_ptr<Device> device;
  ThreadPool threads;
};

// Adds nodes with few arguments; CHECKs on errors.
class TestGraph {
 public:
  explicit TestGraph(const Registry& registry = Registry::Global()) : graph_(registry) {}
  Node* Add(const std::string& op, const std::vector<Node*>& inputs, Attrs attrs = {},
            const std::vector<Node*>& after = {}, const std::string& name = "");
  // Adds a TestSum or a similar op, and sets its attribute N to the number of inputs.
  Node* AddSum(const std::string& op, const std::vector<Node*>& inputs, Attrs attrs = {},
               const std::vector<Node*>& after = {});
  Node* Feed(int index, DType dtype = DType::kInt64);
  Node* Fetch(Node* node, int index, int output = 0);
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Graph Take() { return std::move(graph_); }

 private:
  Graph graph_;
};

// A step, with all objects that StepArgs borrows.
struct TestStep {
  explicit TestStep(int num_fetches = 0, std::vector<Tensor> feeds = {});
  StepArgs Args();

  std::vector<Tensor> feeds, fetches;
  Cancellation cancellation;
  std::unique_ptr<Rendezvous> rendezvous;
  ResourceStore step_resources;
  int64_t deadline_ns = 0;
  StepStatsCollector* stats = nullptr;
};

}  // namespace penstock
