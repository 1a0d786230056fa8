// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_threads.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/spin.h"
#include "core/runtime/poller.h"

namespace penstock {
namespace {

// The time for which Run's thread spins before it blocks: about the time that waking the thread
// takes on a virtual machine.
constexpr auto kSpin = std::chrono::microseconds(100);

}  // namespace

constinit thread_local Runner* StepThreads::thread_runner_ = nullptr;

StepThreads::StepThreads(RunningStep& step, Work& work)
    : step_(step),
      work_(work),
      scheduler_(step.scheduler()),
      runners_max_(std::max(1, scheduler_.num_threads())),
      caller_wakes_(scheduler_, "the other threads of a step") {
  first_runner_.threads = this;
  work_.InitRunner(&first_runner_);
}

void StepThreads::RunAsync(Ended ended, bool starts_here) {
  runs_async_ = true;
  ended_ = std::move(ended);
  first_runner_.yields = true;
  if (starts_here) return RunSlice(first_runner_);
  scheduler_.Schedule([this] { RunSlice(first_runner_); });
}

void StepThreads::Clear() {
  AssertAlone();
  offered_.clear();
}

bool StepThreads::RunHere(Runner& runner) {
  Runner* const outer = std::exchange(thread_runner_, &runner);
  step_.device().UseOnThisThread();
  const bool nothing_left = work_.RunNodes(runner);
  thread_runner_ = outer;
  if (outer != nullptr) outer->threads->step_.device().UseOnThisThread();
  return nothing_left;
}

// Runs on a thread of the scheduler. Runs nodes for a slice, then leaves the step if no node is
// left, else schedules itself again.
void StepThreads::RunSlice(Runner& runner) {
  if (!RunHere(runner)) return scheduler_.Schedule([this, &runner] { RunSlice(runner); });
  if (&runner != &first_runner_) {
    MutexLock lock(mu_);
    idle_runners_.push_back(&runner);
  }
  Leave(/*from_runner=*/true);
}

void StepThreads::Offer(ReadyQueues& ready) {
  auto& [here, cheap, expensive, other_iterations] = ready;
  if (runners_max_ == 1) {
    cheap.insert(cheap.end(), expensive.begin(), expensive.end());
    expensive.clear();
    return;
  }
  const size_t keep = cheap.empty() && other_iterations.empty() ? 1 : 0;
  step_.Share();
  absl::InlinedVector<ReadyNode, 8> nodes;
  for (size_t i = keep; i < expensive.size(); ++i) nodes.push_back({here, expensive[i]});
  here->Hold(static_cast<int>(nodes.size()), /*shared=*/true);
  Share(nodes);
  expensive.resize(keep);
}

void StepThreads::Share(absl::Span<const ReadyNode> nodes) {
  absl::InlinedVector<std::shared_ptr<Invitation>, 4> invited;
  {
    MutexLock lock(mu_);
    offered_.insert(offered_.end(), nodes.begin(), nodes.end());
    int threads = std::min(static_cast<int>(nodes.size()), runners_max_ - num_running_);
    if (threads <= 0) return;
    num_running_ += threads;
    active_.fetch_add(threads, std::memory_order_relaxed);
    if (caller_idle_) {
      caller_idle_ = false;
      Wake(Signal::kWork);
      --threads;
    }
    for (; threads > 0; --threads) invited.push_back(std::make_shared<Invitation>(this));
    invitations_.insert(invitations_.end(), invited.begin(), invited.end());
  }
  for (std::shared_ptr<Invitation>& invitation : invited) {
    scheduler_.Schedule([invitation = std::move(invitation)] {
      StepThreads* const threads = invitation->threads.exchange(nullptr, std::memory_order_acq_rel);
      if (threads != nullptr) threads->RunSlice(*threads->TakeRunner());
    });
  }
}

bool StepThreads::TakeShared(Runner& runner) {
  MutexLock lock(mu_);
  if (!offered_.empty()) {
    const ReadyNode node = offered_.back();
    offered_.pop_back();
    runner.WorkIn(*node.iteration);
    runner.ready.cheap.push_back(node.node & ~Executable::kExpensive);
    return true;
  }
  CancelInvitations();
  --num_running_;
  if (&runner == &first_runner_ && !runs_async_) caller_idle_ = true;
  return false;
}

// Takes back the invitations that no thread has accepted. Called when there are no offered nodes.
// REQUIRES: the caller is active.
void StepThreads::CancelInvitations() {
  for (const std::shared_ptr<Invitation>& invitation : invitations_) {
    if (invitation->threads.exchange(nullptr, std::memory_order_acq_rel) == nullptr) continue;
    --num_running_;
    active_.fetch_sub(1, std::memory_order_relaxed);
  }
  invitations_.clear();
}

Runner* StepThreads::TakeRunner() {
  {
    MutexLock lock(mu_);
    if (!idle_runners_.empty()) {
      Runner* const runner = idle_runners_.back();
      idle_runners_.pop_back();
      return runner;
    }
  }
  auto runner = std::make_unique<Runner>();
  runner->threads = this;
  runner->yields = true;
  work_.InitRunner(runner.get());
  MutexLock lock(mu_);
  runners_.push_back(std::move(runner));
  return runners_.back().get();
}

void StepThreads::Leave(bool from_runner) {
  if (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!runs_async_) {
    MutexLock lock(mu_);
    return Wake(Signal::kEnded);
  }
  const auto end = [this] { std::exchange(ended_, nullptr)(); };
  if (from_runner) return end();
  // This function may run in a callback of the cancellation or of the timer, and the step's end
  // waits for such callbacks. So do not end the step on this thread.
  scheduler_.Schedule(end);
}

void StepThreads::WaitForOthers() {
  while (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    if (AwaitSignal() == Signal::kEnded) return;
    RunHere(first_runner_);
  }
}

void StepThreads::Wake(Signal signal) {
  signal_.store(signal, std::memory_order_release);
  if (caller_blocked_) caller_wakes_.NotifyAll();
}

StepThreads::Signal StepThreads::AwaitSignal() {
  const auto signalled = [this] {
    return signal_.load(std::memory_order_acquire) != Signal::kNone;
  };
  thread_local SpinHabit habit;
  {
    Polling polling(step_.poller());
    scheduler_.Spin(habit, kSpin, [&] {
      polling.Once();
      return signalled();
    });
  }

  // Lock even after a successful spin: the signalling thread must have released the lock before the
  // step is destroyed.
  MutexLock lock(mu_);
  while (!signalled()) {
    caller_blocked_ = true;
    const bool timed = step_.has_deadline() && !step_.cancelled();
    const int64_t deadline_ns = timed ? step_.deadline_ns() : Condition::kNever;
    const bool woken = caller_wakes_.WaitUntil(mu_, deadline_ns, signalled);
    caller_blocked_ = false;
    if (woken) break;
    lock.Unlock();
    work_.CheckDeadline();
    lock.Lock();
  }
  return signal_.exchange(Signal::kNone, std::memory_order_relaxed);
}

}  // namespace penstock
