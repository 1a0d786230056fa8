// SPDX-License-Identifier: Apache-2.0
//
// Executor: runs one partition on one device, in many steps, which may overlap.
//
// MakeExecutor makes it once from a partition: it creates the kernels and turns the graph into flat
// arrays (for each node the kernel, the pending count and the range of out-edges). A thread of the
// step runs cheap ready nodes itself, and offers expensive ones to the pool if other nodes are
// ready. Running a cheap node allocates no memory, takes no lock and formats no text; the state of
// a step is reused for later steps. Thread-safe: Run may be called concurrently. The executor must
// outlive its running steps.
#pragma once

#include <memory>
#include <vector>

#include "core/base/done.h"
#include "core/graph/graph.h"
#include "core/runtime/step_activity.h"
#include "core/runtime/step_args.h"  // IWYU pragma: export

namespace penstock {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs every node once. Calls `done` when no work of the step is left, on a thread of the pool
  // or, if `may_start_here`, possibly before RunAsync returns. The first failure of a node aborts
  // the rendezvous and cancels the step; it becomes the step's status, and its text names the node:
  // "text\n\t [[{{node NAME}}]]". After a failure some fetches may be set; the caller must ignore
  // them. A cancellation by other code ends the step with the cancellation's status, and aborts the
  // rendezvous. Either all nodes after a NoOp with the attribute "_commit" must run, or none. So
  // after that NoOp has run, all nodes that are ready or become ready still run, even if the step
  // fails, except for nodes in loops and nodes that wait (asynchronous kernels).
  virtual void RunAsync(const StepArgs& args, Done done) = 0;
  // Does the same as RunAsync, but starts on this thread and returns when the step has ended.
  // Faster than RunAsync for small steps, because it hands only expensive nodes to other threads.
  // Call this on a pool thread only if no node of the step waits for an event that needs a thread
  // of the same pool.
  virtual Status Run(const StepArgs& args) = 0;

  // Return the graph and the device on which it runs.
  virtual const Graph& graph() const = 0;
  virtual const Device& device() const = 0;
  // Describes what each running step is doing now. Costs the running steps almost nothing.
  virtual std::vector<StepActivity> Activities() = 0;
};

// Makes an executor for `graph`, a Partition's graph. Errors name the node (no kernel, bad
// attribute).
StatusOr<std::unique_ptr<Executor>> MakeExecutor(Graph graph, const ExecutorOptions& options);

}  // namespace penstock
