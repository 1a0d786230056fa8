// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/loop_pool.h"

#include <algorithm>

#include "core/runtime/rendezvous.h"

namespace penstock {

void Frame::Begin(Iteration& around) {
  id = 1 | RendezvousKey{.tensor = loop->name, .frame = around.frame_id, .iteration = around.number}
               .Hash();
  parent = &around;
  oldest = newest = nullptr;
  in_flight = 0;
  enters_left = loop->num_enters;
  constants.assign(loop->num_constants, {});
  left.assign(loop->exits.size(), false);
}

Iteration& LoopPool::TakeIteration() {
  if (idle_iterations_.empty()) {
    iterations_.push_back(std::make_unique<Iteration>(executable_, loop_));
    return *iterations_.back();
  }
  Iteration& it = *idle_iterations_.back();
  idle_iterations_.pop_back();
  return it;
}

Frame& LoopPool::TakeFrame() {
  if (idle_frames_.empty()) {
    frames_.push_back(std::make_unique<Frame>());
    frames_.back()->loop = &loop_;
    return *frames_.back();
  }
  Frame& frame = *idle_frames_.back();
  idle_frames_.pop_back();
  return frame;
}

void LoopPool::Clear() {
  idle_iterations_.clear();
  for (const auto& it : iterations_) {
    it->Clear();
    idle_iterations_.push_back(it.get());
  }
  idle_frames_.clear();
  for (const auto& frame : frames_) {
    frame->deferred.clear();
    frame->constants.clear();
    idle_frames_.push_back(frame.get());
  }
}

std::vector<const Frame*> LoopPool::RunningFrames() const {
  std::vector<const Frame*> running;
  for (const auto& frame : frames_) {
    const auto& idle = idle_frames_;
    if (std::find(idle.begin(), idle.end(), frame.get()) == idle.end()) {
      running.push_back(frame.get());
    }
  }
  return running;
}

}  // namespace penstock
