// SPDX-License-Identifier: Apache-2.0
//
// Frame: one run of a loop. LoopPool: the frames and iterations of one loop, in use or free.
// Private to this folder.
//
// Ownership: StepLoops has a pool per loop. A pool owns its frames and iterations, and keeps unused
// ones for later iterations and steps. Not thread-safe: StepLoops locks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/iteration.h"

namespace penstock {

struct Frame {
  // A value for the iteration after `newest`, which must not begin yet: `parallel_iterations` are
  // running.
  struct DeferredValue {
    const Executable::Item* item;
    Tensor value;
  };
  // A loop constant: a value that enters every iteration.
  struct Constant {
    const Executable::Item* item = nullptr;  // the Enter; null: it has not run yet
    Tensor value;                            // invalid if the value is dead
  };

  // Begins a run of the loop inside the iteration `around`.
  void Begin(Iteration& around);

  const Executable::Loop* loop = nullptr;
  // The number of this run, the same in all tasks; never 0, which means outside of loops.
  uint64_t id = 0;
  Iteration* parent = nullptr;
  Iteration* oldest = nullptr;
  Iteration* newest = nullptr;
  int64_t in_flight = 0;
  uint32_t enters_left = 0;
  std::vector<DeferredValue> deferred;
  std::vector<Constant> constants;
  std::vector<bool> left;  // by Exit: whether a value has left the loop through it
};

class LoopPool {
 public:
  LoopPool(const Executable& executable, const Executable::Loop& loop)
      : executable_(executable), loop_(loop) {}

  // Returns an iteration in the state in which its last user left it, or a new one.
  Iteration& TakeIteration();
  Frame& TakeFrame();
  void PutBack(Iteration& it) { idle_iterations_.push_back(&it); }
  void PutBack(Frame& frame) { idle_frames_.push_back(&frame); }
  // Makes all frames and iterations free, and drops the values that a failed step left behind.
  void Clear();

  // Returns all iterations, in use or free.
  const std::vector<std::unique_ptr<Iteration>>& iterations() const { return iterations_; }
  // Returns the frames in use.
  std::vector<const Frame*> RunningFrames() const;

 private:
  const Executable& executable_;
  const Executable::Loop& loop_;
  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Iteration*> idle_iterations_;
  std::vector<Frame*> idle_frames_;
};

}  // namespace penstock
