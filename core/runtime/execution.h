// SPDX-License-Identifier: Apache-2.0
//
// Execution: one running step of one executable. It owns the four components of a step, and begins
// and ends the step. Private to this folder.
//
//   RunningStep   the step's arguments, and whether it continues
//   StepLoops     the step's iterations and runs of loops
//   NodeRunner    runs the nodes
//   StepThreads   the threads that take part
//
// Ownership: the executor pools executions; an execution owns its components and is used for one
// step at a time. Threads: Run and RunAsync are called between steps; the data that the threads of
// the step share are in the components. Locks: RunningStep's abort_mu_ and watch_mu_, and the mu_
// of StepLoops and of StepThreads. watch_mu_ is locked before StepLoops' mu_; apart from that, a
// thread holds at most one of these locks at a time.
#pragma once

#include <optional>

#include "absl/functional/any_invocable.h"
#include "core/runtime/executable.h"
#include "core/runtime/node_runner.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_activity.h"
#include "core/runtime/step_args.h"
#include "core/runtime/step_loops.h"
#include "core/runtime/step_threads.h"

namespace penstock {

class Execution {
 public:
  using Ended = absl::AnyInvocable<void(Status) &&>;

  Execution(const Executable& executable, const ExecutorOptions& options);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Runs the step on this thread and others, and returns its status.
  Status Run(const StepArgs& args);
  // Runs the step on the scheduler's threads. When `ended` is called, the object is free for
  // another step.
  void RunAsync(const StepArgs& args, Ended ended);
  // Describes what the running step is doing now; nullopt if no step is running. Thread-safe.
  std::optional<StepActivity> Activity();

 private:
  void Begin(const StepArgs& args);
  Status End();
  // Fails a step in which no node is left to run although loops have not ended.
  void FailStuckLoops();

  const Executable& executable_;
  DeadlineTimer& timer_;
  RunningStep step_;
  StepLoops loops_;
  NodeRunner nodes_;
  StepThreads threads_;
  Ended ended_;  // callback of a step that RunAsync has begun
  std::optional<DeadlineTimer::Token> armed_;
};

}  // namespace penstock
