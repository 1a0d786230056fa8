// SPDX-License-Identifier: Apache-2.0
//
// Execution: one step of one executable, in flight: puts together the four parts of a step and
// begins and ends it. Private to this folder.
//
//   RunningStep   the step itself: what it was given, whether it goes on
//   StepLoops     its iterations and runs of loops
//   NodeRunner    runs its nodes
//   StepThreads   its threads
//
// Ownership: the executor pools executions; an execution owns its parts and is used for one step
// after the other. Threads: Run and RunAsync are called between steps; what the threads of the step
// share is in the parts.
// Locks: RunningStep, StepLoops and StepThreads each have one. None is taken while another is held.
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

  // Runs the step on this thread and others.
  Status Run(const StepArgs& args);
  // Runs it on the scheduler's threads. When `ended` is called the object is free for another step.
  void RunAsync(const StepArgs& args, Ended ended);
  // Describes what the running step does now; nullopt if none runs. On any thread, at any time.
  std::optional<StepActivity> Activity();

 private:
  void Begin(const StepArgs& args);
  Status End();
  // Fails a step that has ended while frames are still running.
  void FailEndless();

  const Executable& executable_;
  DeadlineTimer& timer_;
  RunningStep step_;
  StepLoops loops_;
  NodeRunner nodes_;
  StepThreads threads_;
  Ended ended_;  // of a step that RunAsync has begun
  std::optional<DeadlineTimer::Token> armed_;
};

}  // namespace penstock
