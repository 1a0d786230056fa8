// SPDX-License-Identifier: Apache-2.0
//
// Which thread runs which node of a step, and how Run's thread waits for the others.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/spin.h"
#include "core/runtime/execution.h"

namespace penstock {
namespace {

// What Run's thread burns before it blocks: about what waking it would cost on a virtual machine.
constexpr auto kSpin = std::chrono::microseconds(100);
// Once in so many cheap nodes, and before each expensive one, the clock is compared with the
// deadline.
constexpr int kDeadlinePeriod = 64;

}  // namespace

constinit thread_local Execution::Runner* Execution::running_here_ = nullptr;

void Execution::InitRunner(Runner* runner) {
  runner->execution = this;
  runner->ready.here = &root_;
  runner->outputs = std::make_unique<Tensor[]>(program_.outputs_max());
  runner->params = {.step = &step_,
                    .device_name = &device_.name(),
                    .allocator = &device_.allocator(),
                    .host_allocator = &CpuAllocator(),
                    .stream = device_.stream(),
                    .device_handles = device_.kernel_handles()};
}

Execution::Ready* Execution::ReadyHere() {
  Runner* const runner = running_here_;
  return runner != nullptr && runner->execution == this ? &runner->ready : nullptr;
}

void Execution::RunLoop(Runner& runner) {
  Runner* const outer = std::exchange(running_here_, &runner);
  device_.UseOnThisThread();
  uint32_t node;
  while (Next(runner, &node)) {
    if (args_.deadline_ns != 0 && (observed_ || --runner.nodes_to_clock < 0)) {
      runner.nodes_to_clock = kDeadlinePeriod;
      CheckDeadline();
    }
    if (cancellation_->cancelled() && MayDrop(runner)) [[unlikely]] {
      stopped_.store(true, std::memory_order_relaxed);
      runner.ready.cheap.clear();
      runner.ready.expensive.clear();
      runner.ready.elsewhere.clear();
      continue;
    }
    Process(runner, node);
  }
  running_here_ = outer;
  if (outer != nullptr) outer->execution->device_.UseOnThisThread();
}

// The nodes of a loop may: there is no saying how many of them are yet to come.
bool Execution::MayDrop(const Runner& runner) const {
  return !committed_.load(std::memory_order_relaxed) || runner.ready.here->frame != nullptr;
}

bool Execution::Next(Runner& runner, uint32_t* node) {
  auto& [here, cheap, expensive, elsewhere] = runner.ready;
  for (;;) {
    if (!expensive.empty() && expensive.size() + cheap.size() + elsewhere.size() > 1) {
      Offer(runner.ready);
    }
    if (!cheap.empty()) {
      *node = cheap.back();
      cheap.pop_back();
      return true;
    }
    if (!expensive.empty()) {
      runner.nodes_to_clock = 0;
      *node = expensive.back();
      expensive.pop_back();
      return true;
    }
    if (here->frame != nullptr || !elsewhere.empty()) {
      TurnElsewhere(runner);
    } else {
      runner.nodes_to_clock = 0;
      if (!TakeShared(runner)) return false;
    }
  }
}

void Execution::WorkIn(Runner& runner, Iteration& iteration) {
  runner.ready.here = &iteration;
  runner.params.frame = iteration.frame == nullptr ? 0 : iteration.frame->id;
  runner.params.iteration = iteration.number;
}

// Leaves the iteration, which may end by that, for the one last noted, or for what is outside of
// loops.
void Execution::TurnElsewhere(Runner& runner) {
  auto& [here, cheap, expensive, elsewhere] = runner.ready;
  Iteration& left = *std::exchange(here, nullptr);
  Release(left, runner.ready);
  if (elsewhere.empty()) return WorkIn(runner, root_);
  WorkIn(runner, *elsewhere.back().iteration);
  for (bool held = false; !elsewhere.empty() && elsewhere.back().iteration == here; held = true) {
    const uint32_t task = elsewhere.back().node;
    elsewhere.pop_back();
    ((task & Program::kExpensive) != 0 ? expensive : cheap).push_back(task & ~Program::kExpensive);
    if (held) LetGo(*here);  // one hold is enough
  }
}

// When there is nothing the thread no longer counts as running, in one step with looking: who
// offers a node later knows that it has to find another thread for it.
bool Execution::TakeShared(Runner& runner) {
  if (!shared_) return false;
  MutexLock lock(mu_);
  if (!shared_tasks_.empty()) {
    const Task task = shared_tasks_.back();
    shared_tasks_.pop_back();
    WorkIn(runner, *task.iteration);
    runner.ready.cheap.push_back(task.node & ~Program::kExpensive);
    return true;
  }
  TakeBackInvitations();
  --num_running_;
  if (&runner == &first_runner_ && !runs_async_) caller_idle_ = true;
  return false;
}

// Gives expensive nodes to other threads while there is something else to do here. If nobody takes
// them they come back through TakeShared.
void Execution::Offer(Ready& ready) {
  auto& [here, cheap, expensive, elsewhere] = ready;
  if (runners_max_ == 1) {
    cheap.insert(cheap.end(), expensive.begin(), expensive.end());
    expensive.clear();
    return;
  }
  const size_t keep = cheap.empty() && elsewhere.empty() ? 1 : 0;
  if (!shared_) shared_ = true;
  absl::InlinedVector<Task, 8> tasks;
  for (size_t i = keep; i < expensive.size(); ++i) tasks.push_back({here, expensive[i]});
  Hold(*here, static_cast<int>(tasks.size()));
  Share(tasks);
  expensive.resize(keep);
}

void Execution::Share(absl::Span<const Task> tasks) {
  absl::InlinedVector<std::shared_ptr<Invitation>, 4> invited;
  {
    MutexLock lock(mu_);
    shared_tasks_.insert(shared_tasks_.end(), tasks.begin(), tasks.end());
    int threads = std::min(static_cast<int>(tasks.size()), runners_max_ - num_running_);
    if (threads <= 0) return;
    num_running_ += threads;
    active_.fetch_add(threads, std::memory_order_relaxed);
    if (caller_idle_) {
      caller_idle_ = false;
      signal_.store(Signal::kWork, std::memory_order_release);
      if (caller_blocked_) caller_wakes_.NotifyAll();
      --threads;
    }
    for (; threads > 0; --threads) invited.push_back(std::make_shared<Invitation>(this));
    invitations_.insert(invitations_.end(), invited.begin(), invited.end());
  }
  for (std::shared_ptr<Invitation>& invitation : invited) {
    options_.threads->Schedule([invitation = std::move(invitation)] {
      Execution* const execution =
          invitation->execution.exchange(nullptr, std::memory_order_acq_rel);
      if (execution != nullptr) execution->RunOnPool();
    });
  }
}

// Where no node is left to share. REQUIRES that the caller itself is active.
void Execution::TakeBackInvitations() {
  for (const std::shared_ptr<Invitation>& invitation : invitations_) {
    if (invitation->execution.exchange(nullptr, std::memory_order_acq_rel) == nullptr) continue;
    --num_running_;
    active_.fetch_sub(1, std::memory_order_relaxed);
  }
  invitations_.clear();
}

void Execution::RunOnPool() {
  Runner* runner = nullptr;
  {
    MutexLock lock(mu_);
    if (idle_runners_.empty()) {
      runners_.push_back(std::make_unique<Runner>());
      InitRunner(runners_.back().get());
      idle_runners_.push_back(runners_.back().get());
    }
    runner = idle_runners_.back();
    idle_runners_.pop_back();
  }
  RunLoop(*runner);
  {
    MutexLock lock(mu_);
    idle_runners_.push_back(runner);
  }
  Leave(/*from_runner=*/true);
}

void Execution::AddActive() {
  if (!shared_) shared_ = true;
  active_.fetch_add(1, std::memory_order_relaxed);
}

// The last thing anybody does in a step.
void Execution::Leave(bool from_runner) {
  if (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!runs_async_) {
    MutexLock lock(mu_);
    signal_.store(Signal::kEnded, std::memory_order_release);
    if (caller_blocked_) caller_wakes_.NotifyAll();
    return;
  }
  const auto end = [this] {
    Ended ended = std::exchange(ended_, nullptr);
    std::move(ended)(End());
  };
  if (from_runner) return end();
  // Others may call from within a cancellation's callback or the timer's, which End waits for.
  options_.threads->Schedule(end);
}

void Execution::WaitForOthers() {
  while (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    if (AwaitSignal() == Signal::kEnded) return;
    RunLoop(first_runner_);
  }
}

Execution::Signal Execution::AwaitSignal() {
  const auto signalled = [this] {
    return signal_.load(std::memory_order_acquire) != Signal::kNone;
  };
  thread_local SpinHabit habit;
  options_.threads->Spin(habit, kSpin, signalled);

  // Also after a successful spin: who signals holds the lock, and must be out of it before the step
  // can go away.
  MutexLock lock(mu_);
  while (!signalled()) {
    caller_blocked_ = true;
    const bool timed = args_.deadline_ns != 0 && !cancellation_->cancelled();
    const int64_t deadline_ns = timed ? args_.deadline_ns : Condition::kNever;
    const bool woken = caller_wakes_.WaitUntil(mu_, deadline_ns, signalled);
    caller_blocked_ = false;
    if (woken) break;
    lock.Unlock();
    CheckDeadline();
    lock.Lock();
  }
  return signal_.exchange(Signal::kNone, std::memory_order_relaxed);
}

}  // namespace penstock
