// SPDX-License-Identifier: Apache-2.0
//
// StepLoops: begins and ends the runs of loops (frames) of a step and their iterations, and passes
// the values of Enter, NextIteration and Exit between them. Private to this folder.
//
// Ownership: owns the iterations and frames of the step. Borrows the executable and the step.
// Threads: any thread of the step calls it. Only nodes that begin or end an iteration or a loop
// take the lock; a node that passes values within its iteration takes none. Invariants: an
// iteration begins when the first value for it arrives. At most `parallel_iterations` of a frame
// run at once; values for later iterations are deferred. The iterations of a frame end in order,
// because each has a hold on the next one. A frame ends with its last iteration, and then sends a
// dead value through each Exit that has passed no value. Locks: mu_, only if the step is shared.
// While it is held, no kernel runs, the step is not failed, and no other lock of this folder is
// taken.
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

  // Returns the iteration of the nodes outside of loops.
  Iteration& root() { return root_; }

  // Begins a step. Call it after RunningStep::Begin, before any node runs.
  void Begin() {
    root_.ResetCounts(/*first=*/true);
    if (step_.traced()) NoteRootsReady();
  }
  // Ends the step. `clear` must be true if nodes were dropped, because then values and frames may
  // be left over.
  void End(bool clear) {
    root_.ready_ns = nullptr;
    if (clear) Clear();
  }

  // Pass on the outputs of an Enter, a NextIteration and an Exit, and leave `outputs` empty. Enter
  // passes them to the first iteration of the loop into which `item` leads, or, if it is constant,
  // to all iterations; NextIteration to the next iteration; Exit out of the loop. NextIteration and
  // Exit are not called with dead values: a dead value begins no iteration, and when a loop ends it
  // sends dead values through its unused Exits.
  void Enter(Iteration& from, const Executable::Item& item, Tensor* outputs, bool dead,
             ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  void NextIteration(Iteration& it, const Executable::Item& item, Tensor* outputs,
                     ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  // If a value has already left the loop through this Exit, drops the output and returns an
  // InvalidArgument.
  Status Exit(Iteration& it, const Executable::Item& item, Tensor* outputs, ReadyQueues& ready)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Drops a hold on `it`. If it was the last one, ends the iteration, and possibly later ones, on
  // which ended iterations had holds. Adds nodes that become ready to `ready`.
  void Release(Iteration& it, ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_) {
    if (it.DropHold(step_.shared())) EndFrom(it, ready);
  }

  // Returns whether frames have begun and not ended. REQUIRES: no thread works in the step.
  bool AnyRunning() const {
    AssertAlone();
    return frames_running_ > 0;
  }
  // Adds the waiting nodes and the running loops to `activity`.
  void AddActivity(StepActivity* activity) ABSL_LOCKS_EXCLUDED(mu_);
  // Return a text to append to an error: "; it waited for 'a' (_Recv)", "; it was in iteration 3 of
  // loop 'while'". "" if no node waits, or no loop runs.
  std::string DescribeWaits() ABSL_LOCKS_EXCLUDED(mu_);
  std::string DescribeFrames() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Locks mu_ if the step is shared. A step that is not shared has only one thread.
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
  // Does nothing. Call it before a step begins or after it has ended, when no lock is needed.
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
