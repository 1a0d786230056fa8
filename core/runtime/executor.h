// SPDX-License-Identifier: Apache-2.0
//
// Executor: runs one partition on one device, step after step, many steps at a time.
//
// Made once from a partition: kernels are created, the graph becomes flat arrays (per node the
// kernel, the pending count, the range of out-edges). A ready node that is cheap runs inline, an
// expensive one goes to the pool while others are ready. No allocation, lock or string per op on
// the hot path; per-step state is pooled between steps.
// Thread-safe: Run may be called concurrently. The executor outlives its running steps.
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
  // Runs every node once and calls `done`, on a thread of the pool, when nothing of the step runs
  // any more. The first failure aborts the rendezvous, cancels the step, and is the status; it
  // names the node: "text\n\t [[{{node NAME}}]]". After one, some fetches may be filled in: the
  // caller drops them. A cancellation from outside ends the step with its status, and with an abort
  // of the rendezvous. A NoOp with the attribute "_commit" says that what follows is to be done as
  // a whole: once it has run, the nodes that are or become ready are run whatever happens, but for
  // those of loops and those that wait (kernels that are async).
  virtual void RunAsync(const StepArgs& args, Done done) = 0;
  // As RunAsync, on this thread, returning when the step has ended. The quickest way for small
  // steps: nothing leaves the thread unless it pays. It blocks: on a thread of the pool only if
  // the step waits for nothing that needs that pool.
  virtual Status Run(const StepArgs& args) = 0;

  // The graph that it runs, and the device that it runs on.
  virtual const Graph& graph() const = 0;
  virtual const Device& device() const = 0;
  // Describes what each running step does now. Costs running steps next to nothing.
  virtual std::vector<StepActivity> Activities() = 0;
};

// `graph` is the Partition's. Errors name the node (no kernel, bad attribute).
StatusOr<std::unique_ptr<Executor>> MakeExecutor(Graph graph, const ExecutorOptions& options);

}  // namespace penstock
