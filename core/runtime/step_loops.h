// SPDX-License-Identifier: Apache-2.0
//
// StepLoops: the iterations of a step: when runs of loops (frames) and their iterations begin and
// end, and what Enter, NextIteration and Exit pass between them. Private to this folder.
//
// Ownership: owns the iterations and frames of the step. Borrows the executable and the step.
// Threads: any thread of the step calls it. Nodes of the same loop only meet here where an
// iteration or a loop begins or ends: a node that stays inside its iteration takes no lock.
// Invariants: an iteration begins when the first value for it comes, and at most
// `parallel_iterations` of a frame are in flight; values for later ones are deferred. Iterations of
// a frame end in order, since each is held by the one before it. A frame ends with its last
// iteration, and then sends a dead value through each Exit that no value has left by.
// Locks: mu_, only if the step is shared. Under it no kernel runs, the step is not failed, and
// nothing else of this folder is locked.
#pragma once

#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/runtime/iteration.h"
#include "core/runtime/loop_pool.h"
#include "core/runtime/propagation.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_activity.h"

namespace penstock {

class StepLoops {
 public:
  StepLoops(const Executable& executable, const RunningStep& step);
  StepLoops(const StepLoops&) = delete;
  StepLoops& operator=(const StepLoops&) = delete;

  // The iteration of the nodes outside of loops.
  Iteration& root() { return root_; }

  // Begins a step: to be called after RunningStep::Begin, before any node runs.
  void Begin() {
    root_.ResetCounts(/*first=*/true);
    if (step_.traced()) NoteRootsReady();
  }
  // Ends it. `clear`: nodes were dropped, so that values and frames may be left.
  void End(bool clear) {
    root_.ready_ns = nullptr;
    if (clear) Clear();
  }

  // Passes on what a node of that op has: `outputs` to the first iteration, or all (of a constant),
  // of the loop that `item` leads to; to the next iteration; out of the loop. NextIteration and
  // Exit are not called with dead values, which begin nothing and leave when the loop ends. Outputs
  // are left empty.
  void Enter(Iteration& from, const Executable::Item& item, Tensor* outputs, bool dead,
             ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  void NextIteration(Iteration& it, const Executable::Item& item, Tensor* outputs,
                     ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  // InvalidArgument if a value has left by this Exit before.
  Status Exit(Iteration& it, const Executable::Item& item, Tensor* outputs, ReadyQueues& ready)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Drops a hold. If it was the last one the iteration ends, and with it perhaps those that it
  // holds; what becomes ready by that is added to `ready`.
  void Release(Iteration& it, ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_) {
    if (it.DropHold(step_.shared())) EndFrom(it, ready);
  }

  // Whether frames have begun that have not ended. REQUIRES: no thread is at work in the step.
  bool AnyRunning() const {
    AssertAlone();
    return frames_running_ > 0;
  }
  // Adds the nodes that wait and the loops that run.
  void AddActivity(StepActivity* activity) ABSL_LOCKS_EXCLUDED(mu_);
  // Both are phrases for an error, or "": "; it waited for 'a' (_Recv)", "; it was in iteration 3
  // of loop 'while'".
  std::string DescribeWaits() ABSL_LOCKS_EXCLUDED(mu_);
  std::string DescribeFrames() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Holds mu_ if the step is shared. In a step that is not there is one thread.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(StepLoops& loops) ABSL_EXCLUSIVE_LOCK_FUNCTION(loops.mu_);
    ~Lock() ABSL_UNLOCK_FUNCTION();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Mutex* const mu_;  // null: not locked
  };

  void NoteRootsReady();
  void Clear();
  LoopPool& PoolOf(const Executable::Loop& loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return pools_[&loop - executable_.loops().data()];
  }
  Frame& FrameOf(Iteration& parent, uint32_t loop_index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginIteration(Frame& frame, ReadyQueues& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Iteration* EndIteration(Iteration& it, ReadyQueues& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Iteration* EndFrame(Frame& frame, ReadyQueues& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropHolds(Iteration* it, ReadyQueues& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndFrom(Iteration& it, ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  // Does nothing. Before a step begins and after it has ended nothing of it needs a lock.
  void AssertAlone() const ABSL_ASSERT_EXCLUSIVE_LOCK(mu_) {}

  const Executable& executable_;
  const RunningStep& step_;
  const Propagation propagation_;
  Iteration root_;
  Mutex mu_;
  std::vector<LoopPool> pools_ ABSL_GUARDED_BY(mu_);  // by loop
  int frames_running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
