// SPDX-License-Identifier: Apache-2.0
//
// Frame: one run of a loop. LoopPool: the frames and iterations of one loop, in use and not.
// Private to this folder.
//
// Ownership: StepLoops has a pool per loop, which owns the frames and iterations, grows to what is
// in flight at once and is kept for the next step. Not thread-safe: StepLoops locks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/iteration.h"

namespace penstock {

struct Frame {
  // A value for the iteration after `newest`, which may not begin yet.
  struct Deferred {
    const Executable::Item* item;
    Tensor value;
  };
  // A value that every iteration gets.
  struct Constant {
    const Executable::Item* item = nullptr;  // the Enter; null: not yet
    Tensor value;                            // invalid: dead
  };

  // Begins a run, inside `around`.
  void Begin(Iteration& around);

  const Executable::Loop* loop = nullptr;
  uint64_t id = 0;  // the same in all tasks, and never 0, which is outside of loops
  Iteration* parent = nullptr;
  Iteration* oldest = nullptr;
  Iteration* newest = nullptr;
  int64_t in_flight = 0;
  uint32_t enters_left = 0;
  std::vector<Deferred> deferred;
  std::vector<Constant> constants;
  std::vector<bool> left;  // by exit: a value has gone out
};

class LoopPool {
 public:
  LoopPool(const Executable& executable, const Executable::Loop& loop)
      : executable_(executable), loop_(loop) {}

  // As the last user left it, or new.
  Iteration& TakeIteration();
  Frame& TakeFrame();
  void PutBack(Iteration& it) { idle_iterations_.push_back(&it); }
  void PutBack(Frame& frame) { idle_frames_.push_back(&frame); }
  // Takes back all of them, with what a step that has failed left behind.
  void Clear();

  // All that there are, in use or not.
  const std::vector<std::unique_ptr<Iteration>>& iterations() const { return iterations_; }
  // The frames in use.
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
