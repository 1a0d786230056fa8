// SPDX-License-Identifier: Apache-2.0
//
// Executor: runs one partition on one device, in many steps, also concurrently.
//
// Made once from a partition: MakeExecutor creates the kernels and turns the graph into flat arrays
// (for each node the kernel, the pending count and the range of out-edges). A cheap ready node runs
// inline; an expensive one goes to the pool if other nodes are ready. No allocation, lock or string
// per op on the hot path; per-step state is pooled between steps. Thread-safe: Run may be called
// concurrently. The executor outlives its running steps.
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
  // or, if `may_start_here`, possibly before it returns. The first failure aborts the rendezvous
  // and cancels the step. It becomes the status, and names the node: "text\n\t [[{{node NAME}}]]".
  // After a failure some fetches may be set: the caller drops them. A cancellation from outside
  // ends the step with its status, and aborts the rendezvous. The nodes after a NoOp with the
  // attribute "_commit" must run all or not at all. So once that NoOp has run, all nodes that are
  // or become ready still run, even if the step fails. Exceptions are nodes in loops and nodes that
  // wait (asynchronous kernels).
  virtual void RunAsync(const StepArgs& args, Done done) = 0;
  // Does the same as RunAsync, but starts on this thread and returns when the step has ended.
  // Quicker than RunAsync for small steps, because it gives work to other threads only if that
  // saves time. Call it on a pool thread only if no node of the step waits for an event that needs
  // a thread of this pool.
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
