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

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/done.h"
#include "core/base/env.h"
#include "core/graph/graph.h"
#include "core/op/kernel.h"
#include "core/runtime/deadline_timer.h"
#include "core/runtime/device.h"
#include "core/runtime/rendezvous.h"
#include "core/runtime/step_stats.h"

namespace penstock {

class KernelCache;  // core/runtime/kernel_cache.h

// What one step brings to an executor. Borrowed until `done`.
struct StepArgs {
  int64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  Cancellation* cancellation = nullptr;
  ResourceStore* resources = nullptr;  // null: the device's own
  ResourceStore* step_resources = nullptr;
  int64_t deadline_ns = 0;        // Env::NowNanos() scale; 0: none
  const Tensor* feeds = nullptr;  // indexed by _Feed's attribute "index"
  int num_feeds = 0;
  Tensor* fetches = nullptr;  // indexed by _Fetch's attribute "index"
  int num_fetches = 0;
  StepStatsCollector* stats = nullptr;  // null: nothing is recorded
};

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
  // steps: nothing leaves the thread unless it pays. It blocks: on a thread of the pool only where
  // the step waits for nothing that needs that pool.
  virtual Status Run(const StepArgs& args) = 0;
};

struct ExecutorOptions {
  Device* device = nullptr;
  Scheduler* threads = nullptr;
  Env* env = nullptr;
  DeadlineTimer* timer = nullptr;
  KernelCache* kernels = nullptr;  // of the session; null: the executor's are its own
};
// `graph` is the Partition's. Errors name the node (no kernel, bad attribute).
StatusOr<std::unique_ptr<Executor>> MakeExecutor(Graph graph, const ExecutorOptions& options);

}  // namespace penstock
