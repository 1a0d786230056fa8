// SPDX-License-Identifier: Apache-2.0
//
// When iterations, and runs of loops, begin and end.
#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/runtime/execution.h"

namespace penstock {
namespace {

constexpr int kLoopsShownMax = 5;

}  // namespace

Execution::FlowLock::FlowLock(Execution& execution)
    : mu_(execution.shared_ ? &execution.flow_mu_ : nullptr) {
  if (mu_ != nullptr) mu_->Lock();
}

Execution::FlowLock::~FlowLock() {
  if (mu_ != nullptr) mu_->Unlock();
}

void Execution::InitIteration(const Program::Loop& loop, Iteration* it) {
  it->items = program_.items() + loop.first_item;
  it->loop = &loop;
  it->inputs = std::make_unique<Tensor[]>(loop.num_slots);
  it->pending = std::make_unique<std::atomic<uint32_t>[]>(loop.num_items);
  it->waits = std::make_unique<Wait[]>(loop.waits.size());
  it->children.resize(loop.num_children);
  for (size_t i = 0; i < loop.waits.size(); ++i) {
    Wait& wait = it->waits[i];
    wait.execution = this;
    wait.iteration = it;
    wait.item = &it->items[loop.waits[i]];
    wait.outputs = std::make_unique<Tensor[]>(wait.item->num_outputs);
  }
}

void Execution::ResetCounts(Iteration* it, bool first) {
  const Program::Loop& loop = *it->loop;
  for (uint32_t i = 0; i < loop.num_items; ++i) {
    it->pending[i].store(program_.pending(loop.first_item + i), std::memory_order_relaxed);
  }
  if (first) return;
  for (const auto& [node, count] : loop.later_pending) {
    it->pending[node].store(count, std::memory_order_relaxed);
  }
}

// The run of `loop` that is begun by this iteration of the loop around it.
Execution::Frame& Execution::FrameOf(Iteration& parent, uint32_t loop_index) {
  const Program::Loop& loop = program_.loops()[loop_index];
  Frame*& running = parent.children[loop.child];
  if (running != nullptr) return *running;
  LoopPool& pool = pools_[loop_index];
  if (pool.idle_frames.empty()) {
    pool.frames.push_back(std::make_unique<Frame>());
    pool.frames.back()->loop = &loop;
    pool.idle_frames.push_back(pool.frames.back().get());
  }
  Frame& frame = *pool.idle_frames.back();
  pool.idle_frames.pop_back();
  // The same in every process, and never 0, which is outside of loops.
  frame.id = 1 | RendezvousKey{.tensor = loop.name,
                               .frame = parent.frame == nullptr ? 0 : parent.frame->id,
                               .iteration = parent.number}
                     .Hash();
  frame.parent = &parent;
  frame.oldest = frame.newest = nullptr;
  frame.in_flight = 0;
  frame.enters_left = loop.num_enters;
  frame.constants.assign(loop.num_constants, {});
  frame.left.assign(loop.exits.size(), false);
  Hold(parent, 1);
  ++frames_running_;
  running = &frame;
  return frame;
}

// Held once: by the iteration before it or, if it is the first, by the Enters to come.
Execution::Iteration* Execution::BeginIteration(Frame& frame, Ready& ready) {
  LoopPool& pool = pools_[frame.loop - program_.loops().data()];
  if (pool.idle_iterations.empty()) {
    pool.iterations.push_back(std::make_unique<Iteration>());
    InitIteration(*frame.loop, pool.iterations.back().get());
    pool.idle_iterations.push_back(pool.iterations.back().get());
  }
  Iteration* const it = pool.idle_iterations.back();
  pool.idle_iterations.pop_back();
  Iteration* const before = frame.newest;
  it->frame = &frame;
  it->number = before == nullptr ? 0 : before->number + 1;
  it->next = nullptr;
  it->holds.store(1, std::memory_order_relaxed);
  ResetCounts(it, /*first=*/before == nullptr);
  if (args_.stats != nullptr) it->ready_ns = std::make_unique<int64_t[]>(it->loop->num_items);
  frame.newest = it;
  (before == nullptr ? frame.oldest : before->next) = it;
  ++frame.in_flight;

  for (const Frame::Constant& constant : frame.constants) {
    if (constant.item == nullptr) continue;
    Tensor value = constant.value;
    Propagate<false>(*constant.item, &value, !value.valid(), *it, ready);
  }
  // None of them can be of the iteration that begins here: it has not run.
  for (Frame::Deferred& deferred : frame.deferred) {
    Propagate<false>(*deferred.item, &deferred.value, false, *it, ready);
  }
  frame.deferred.clear();
  return it;
}

// Returns what has one hold fewer by that: the iteration after it, or the one around its loop.
Execution::Iteration* Execution::EndIteration(Iteration& it, Ready& ready) {
  Frame& frame = *it.frame;
  DCHECK(frame.oldest == &it);
  --frame.in_flight;
  if (!frame.deferred.empty()) BeginIteration(frame, ready);
  Iteration* const next = it.next;
  // Merges that nothing came to, in a loop that is not well formed, leave values behind.
  for (uint32_t i = 0; i < it.loop->num_slots; ++i) {
    if (it.inputs[i].valid()) [[unlikely]]
      it.inputs[i] = Tensor();
  }
  it.ready_ns = nullptr;
  frame.oldest = next;
  pools_[frame.loop - program_.loops().data()].idle_iterations.push_back(&it);
  return next != nullptr ? next : EndFrame(frame, ready);
}

Execution::Iteration* Execution::EndFrame(Frame& frame, Ready& ready) {
  const Program::Loop& loop = *frame.loop;
  const Item* const items = program_.items() + loop.first_item;
  for (size_t i = 0; i < loop.exits.size(); ++i) {
    if (!frame.left[i]) Propagate<false>(items[loop.exits[i]], nullptr, true, *frame.parent, ready);
  }
  for (Frame::Constant& constant : frame.constants) constant.value = Tensor();
  frame.parent->children[loop.child] = nullptr;
  pools_[&loop - program_.loops().data()].idle_frames.push_back(&frame);
  --frames_running_;
  return frame.parent;
}

void Execution::Hold(Iteration& it, int count) {
  if (it.frame == nullptr) return;
  if (shared_) {
    it.holds.fetch_add(count, std::memory_order_relaxed);
  } else {
    it.holds.store(it.holds.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
}

// True for the last.
bool Execution::LetGo(Iteration& it) {
  if (it.frame == nullptr) return false;
  if (shared_) return it.holds.fetch_sub(1, std::memory_order_acq_rel) == 1;
  const int left = it.holds.load(std::memory_order_relaxed) - 1;
  it.holds.store(left, std::memory_order_relaxed);
  return left == 0;
}

void Execution::LetGoLocked(Iteration* it, Ready& ready) {
  while (LetGo(*it)) it = EndIteration(*it, ready);
}

void Execution::Release(Iteration& it, Ready& ready) {
  if (!LetGo(it)) return;
  const FlowLock lock(*this);
  LetGoLocked(EndIteration(it, ready), ready);
}

// After a failure, when nobody is at work any more.
void Execution::ClearLoops() {
  AssertAlone();
  for (LoopPool& pool : pools_) {
    pool.idle_iterations.clear();
    for (const auto& it : pool.iterations) {
      for (uint32_t i = 0; i < it->loop->num_slots; ++i) it->inputs[i] = Tensor();
      for (size_t i = 0; i < it->loop->waits.size(); ++i) it->waits[i].copied = false;
      std::fill(it->children.begin(), it->children.end(), nullptr);
      it->ready_ns = nullptr;
      pool.idle_iterations.push_back(it.get());
    }
    pool.idle_frames.clear();
    for (const auto& frame : pool.frames) {
      frame->deferred.clear();
      frame->constants.clear();
      pool.idle_frames.push_back(frame.get());
    }
  }
  std::fill(root_.children.begin(), root_.children.end(), nullptr);
  frames_running_ = 0;
}

std::string Execution::DescribeLoops() {
  const FlowLock lock(*this);
  std::string text;
  int shown = 0;
  for (const LoopPool& pool : pools_) {
    for (const auto& frame : pool.frames) {
      const bool idle = std::find(pool.idle_frames.begin(), pool.idle_frames.end(), frame.get()) !=
                        pool.idle_frames.end();
      if (idle || frame->newest == nullptr || ++shown > kLoopsShownMax) continue;
      StrAppend(&text, shown > 1 ? ", " : "; it was in ", "iteration ", frame->newest->number,
                " of loop '", frame->loop->name, "'");
    }
  }
  return text;
}

}  // namespace penstock
