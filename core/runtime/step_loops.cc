// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_loops.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace penstock {
namespace {

constexpr int kFramesShownMax = 5;
constexpr size_t kWaitsShownMax = 5;

}  // namespace

StepLoops::Lock::Lock(StepLoops& loops) : mu_(loops.step_.shared() ? &loops.mu_ : nullptr) {
  if (mu_ != nullptr) mu_->Lock();
}

StepLoops::Lock::~Lock() {
  if (mu_ != nullptr) mu_->Unlock();
}

StepLoops::StepLoops(const Executable& executable, const RunningStep& step)
    : executable_(executable),
      step_(step),
      propagation_(executable, step),
      root_(executable, executable.loops()[0]) {
  for (const Executable::Loop& loop : executable.loops()) pools_.emplace_back(executable, loop);
}

void StepLoops::NoteRootsReady() {
  root_.ready_ns = std::make_unique<int64_t[]>(root_.loop->num_items);
  const int64_t now_ns = step_.NowNanos();
  for (const uint32_t node : executable_.roots()) root_.ready_ns[node] = now_ns;
}

void StepLoops::Clear() {
  AssertAlone();
  for (LoopPool& pool : pools_) pool.Clear();
  root_.Clear();
  frames_running_ = 0;
}

void StepLoops::Enter(Iteration& from, const Executable::Item& item, Tensor* outputs, bool dead,
                      ReadyQueues& ready) {
  const Lock lock(*this);
  const Executable::Detail& detail = executable_.detail(item);
  Frame& frame = FrameOf(from, detail.loop);
  if (frame.oldest == nullptr) {
    // The first iteration cannot end before its last Enter has run.
    BeginIteration(frame, ready);
  }
  if (detail.constant < 0) {
    propagation_.Pass(item, outputs, dead, *frame.oldest, ready);
  } else {
    Tensor value = dead ? Tensor() : std::move(outputs[0]);
    for (Iteration* it = frame.oldest; it != nullptr; it = it->next) {
      if (!dead) outputs[0] = value;
      propagation_.Pass(item, outputs, dead, *it, ready);
    }
    frame.constants[detail.constant] = {&item, std::move(value)};
  }
  if (--frame.enters_left == 0) DropHolds(frame.oldest, ready);
}

void StepLoops::NextIteration(Iteration& it, const Executable::Item& item, Tensor* outputs,
                              ReadyQueues& ready) {
  const Lock lock(*this);
  Frame& frame = *it.frame;
  if (it.next == nullptr) {
    if (!frame.deferred.empty() || frame.in_flight >= frame.loop->parallel_iterations) {
      frame.deferred.push_back({&item, std::move(outputs[0])});
      return;
    }
    BeginIteration(frame, ready);
  }
  propagation_.Pass(item, outputs, false, *it.next, ready);
}

Status StepLoops::Exit(Iteration& it, const Executable::Item& item, Tensor* outputs,
                       ReadyQueues& ready) {
  const Lock lock(*this);
  Frame& frame = *it.frame;
  std::vector<bool>::reference left = frame.left[executable_.detail(item).exit];
  if (left) {
    outputs[0] = Tensor();
    return InvalidArgument("loop '", frame.loop->name, "' is left twice");
  }
  left = true;
  propagation_.Pass(item, outputs, false, *frame.parent, ready);
  return OkStatus();
}

// Returns the run of the loop inside the iteration `parent`; begins one if there is none.
Frame& StepLoops::FrameOf(Iteration& parent, uint32_t loop_index) {
  const Executable::Loop& loop = executable_.loops()[loop_index];
  Frame*& running = parent.children[loop.child];
  if (running != nullptr) return *running;
  running = &PoolOf(loop).TakeFrame();
  running->Begin(parent);
  parent.Hold(1, step_.shared());
  ++frames_running_;
  return *running;
}

// Begins the next iteration of `frame`. It starts with one hold: that of the iteration before it
// or, if it is the first, that of the Enters that have not run yet.
void StepLoops::BeginIteration(Frame& frame, ReadyQueues& ready) {
  Iteration& it = PoolOf(*frame.loop).TakeIteration();
  Iteration* const before = frame.newest;
  it.frame = &frame;
  it.frame_id = frame.id;
  it.number = before == nullptr ? 0 : before->number + 1;
  it.next = nullptr;
  it.holds.store(1, std::memory_order_relaxed);
  it.ResetCounts(/*first=*/before == nullptr);
  if (step_.traced()) it.ready_ns = std::make_unique<int64_t[]>(it.loop->num_items);
  frame.newest = &it;
  (before == nullptr ? frame.oldest : before->next) = &it;
  ++frame.in_flight;

  for (const Frame::Constant& constant : frame.constants) {
    if (constant.item == nullptr) continue;
    Tensor value = constant.value;
    propagation_.Pass(*constant.item, &value, !value.valid(), it, ready);
  }
  // All deferred values are for this iteration: it has not run, so no value for a later iteration
  // exists.
  for (Frame::DeferredValue& deferred : frame.deferred) {
    propagation_.Pass(*deferred.item, &deferred.value, false, it, ready);
  }
  frame.deferred.clear();
}

// Ends `it`: begins the next iteration if values for it were deferred, and ends the loop after its
// last iteration. Returns the iteration that loses a hold because `it` has ended: the next
// iteration, or the iteration in which the loop runs.
Iteration* StepLoops::EndIteration(Iteration& it, ReadyQueues& ready) {
  Frame& frame = *it.frame;
  DCHECK(frame.oldest == &it);
  --frame.in_flight;
  if (!frame.deferred.empty()) BeginIteration(frame, ready);
  Iteration* const next = it.next;
  // In a malformed loop, values may be left at Merges whose other inputs never arrived.
  for (uint32_t i = 0; i < it.loop->num_slots; ++i) {
    if (it.inputs[i].valid()) [[unlikely]]
      it.inputs[i] = Tensor();
  }
  it.ready_ns = nullptr;
  frame.oldest = next;
  PoolOf(*frame.loop).PutBack(it);
  return next != nullptr ? next : EndFrame(frame, ready);
}

Iteration* StepLoops::EndFrame(Frame& frame, ReadyQueues& ready) {
  const Executable::Loop& loop = *frame.loop;
  const Executable::Item* const items = executable_.items() + loop.first_item;
  for (size_t i = 0; i < loop.exits.size(); ++i) {
    if (!frame.left[i]) {
      propagation_.Pass(items[loop.exits[i]], nullptr, true, *frame.parent, ready);
    }
  }
  for (Frame::Constant& constant : frame.constants) constant.value = Tensor();
  frame.parent->children[loop.child] = nullptr;
  PoolOf(loop).PutBack(frame);
  --frames_running_;
  return frame.parent;
}

void StepLoops::DropHolds(Iteration* it, ReadyQueues& ready) {
  while (it->DropHold(step_.shared())) it = EndIteration(*it, ready);
}

void StepLoops::EndFrom(Iteration& it, ReadyQueues& ready) {
  const Lock lock(*this);
  DropHolds(EndIteration(it, ready), ready);
}

void StepLoops::AddActivity(StepActivity* activity) {
  const Lock lock(*this);
  const auto add_waits = [&](const Iteration& it) {
    for (size_t i = 0; i < it.loop->waits.size(); ++i) {
      const NodeWait& wait = it.waits[i];
      if (!wait.in_flight.load(std::memory_order_relaxed)) continue;
      activity->waits.push_back({.node = wait.item->node,
                                 .since_ns = wait.since_ns.load(std::memory_order_relaxed),
                                 .iteration = it.number});
    }
  };
  add_waits(root_);
  for (const LoopPool& pool : pools_) {
    for (const auto& it : pool.iterations()) add_waits(*it);
    for (const Frame* const frame : pool.RunningFrames()) {
      if (frame->newest == nullptr) continue;
      activity->loops.push_back({frame->loop->name, frame->newest->number});
    }
  }
}

std::string StepLoops::DescribeWaits() {
  StepActivity activity;
  AddActivity(&activity);
  std::vector<std::string> names;
  for (const StepActivity::Wait& wait : activity.waits) {
    if (names.size() == kWaitsShownMax) break;
    names.push_back(StrCat("'", wait.node->name(), "' (", wait.node->op_name(), ")"));
  }
  if (names.empty()) return "";
  const size_t more = activity.waits.size() - names.size();
  if (more > 0) names.push_back(StrCat(more, " more"));
  return StrCat("; it waited for ", absl::StrJoin(names, ", "));
}

std::string StepLoops::DescribeFrames() {
  StepActivity activity;
  AddActivity(&activity);
  std::string text;
  int shown = 0;
  for (const StepActivity::Loop& loop : activity.loops) {
    if (++shown > kFramesShownMax) break;
    StrAppend(&text, shown > 1 ? ", " : "; it was in ", "iteration ", loop.iteration, " of loop '",
              loop.name, "'");
  }
  return text;
}

}  // namespace penstock
