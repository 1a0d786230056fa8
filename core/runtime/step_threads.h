// SPDX-License-Identifier: Apache-2.0
//
// StepThreads: the threads of a step: which of them takes part, what one offers to the others, and
// how the step's end is noticed. It does not know what a node is. Private to this folder.
//
// A step begins on one thread. A thread that has expensive nodes to spare offers them, and invites
// as many threads of the scheduler as there is room for. A thread with nothing left to do takes
// what others have offered, or leaves. `active_` counts who is still busy in the step: threads
// that run its nodes or are invited to, and nodes that wait. Who takes it to zero ends the step.
// A runner on a thread of the scheduler runs for a slice at a time. After that it goes on behind
// what else is scheduled, so that no step keeps others, or a call of a client, from the threads.
//
// Ownership: owns the runners and what is offered; borrows scheduler, step and Work.
// Threads: all public functions but Begin, Run, RunAsync and Clear may be called by any thread of
// the step, which must be active in it.
// Invariants: (1) an invitation is either accepted or taken back. The step waits only for runners
// that have come, never for a thread that is busy elsewhere, perhaps with waiting for this very
// step.
// (2) A thread that finds nothing offered stops counting as running under the same lock: who
// offers a node later knows that it has to find another thread for it.
// Locks: mu_. Nothing is called with it held but Notify of a Condition.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/runtime/runner.h"
#include "core/runtime/running_step.h"

namespace penstock {

class StepThreads {
 public:
  // The work that the threads do.
  class Work {
   public:
    virtual ~Work() = default;
    // Makes a new runner ready for use.
    virtual void InitRunner(Runner* runner) = 0;
    // Runs nodes until TakeOffered(runner) says that there are none. Returns false, with nodes left
    // in the runner, when the slice of a runner that yields has ended.
    virtual bool RunNodes(Runner& runner) = 0;
    // Fails the step if its deadline has come.
    virtual void CheckDeadline() = 0;
  };
  using Ended = absl::AnyInvocable<void() &&>;

  // All of them outlive it.
  StepThreads(RunningStep& step, Work& work);
  StepThreads(const StepThreads&) = delete;
  StepThreads& operator=(const StepThreads&) = delete;

  // Begins a step, after RunningStep::Begin. Its first nodes go to the runner returned.
  Runner& Begin() {
    AssertAlone();
    active_.store(1, std::memory_order_relaxed);
    num_running_ = 1;
    caller_idle_ = false;
    return first_runner_;
  }
  // Runs the step on this thread and others; returns when nobody is active in it.
  void Run() {
    runs_async_ = false;
    first_runner_.yields = false;  // the thread is the caller's
    RunHere(first_runner_);
    if (step_.shared()) WaitForOthers();
  }
  // Runs it on the scheduler's threads. `ended` is called on one of them when nobody is active.
  void RunAsync(Ended ended);
  // Drops what a step that has failed has left offered, after its end.
  void Clear();

  // Gives expensive nodes to other threads while there is something else to do here; keeps one if
  // there is not. If no thread takes them they come back through TakeOffered. If the scheduler has
  // one thread only, they become cheap.
  void Offer(ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  // Offers nodes, each with the hold on its iteration, from a thread that runs none itself.
  void Share(absl::Span<const ReadyNode> nodes) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives `runner`, which has no node left, a node that was offered. Returns false if there is
  // none: the runner then leaves RunNodes.
  bool TakeOffered(Runner& runner) { return step_.shared() && TakeShared(runner); }

  // Keeps the step from ending until Leave, for a node that waits. Shares the step. REQUIRES: the
  // caller is active, as a thread at work in the step is.
  void AddActive() {
    step_.Share();
    active_.fetch_add(1, std::memory_order_relaxed);
  }
  // Undoes AddActive, on any thread; the last thing it does in the step. It may be called inside a
  // callback of the step's cancellation or timer.
  void Leave() { Leave(/*from_runner=*/false); }

  // How many threads and nodes that wait are active in the step now.
  int active() const { return active_.load(std::memory_order_relaxed); }

  // The queues of the runner of this step that is at work on this thread, or null.
  ReadyQueues* ReadyHere() const {
    Runner* const runner = running_here_;
    return runner != nullptr && runner->threads == this ? &runner->ready : nullptr;
  }

 private:
  struct Invitation {
    explicit Invitation(StepThreads* to) : threads(to) {}
    std::atomic<StepThreads*> threads;  // null: accepted, or taken back
  };
  enum class Signal { kNone, kWork, kEnded };

  bool RunHere(Runner& runner);
  void RunSlice(Runner& runner) ABSL_LOCKS_EXCLUDED(mu_);
  Runner* TakeRunner() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeShared(Runner& runner) ABSL_LOCKS_EXCLUDED(mu_);
  void Wake(Signal signal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeBackInvitations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(bool from_runner) ABSL_LOCKS_EXCLUDED(mu_);
  void WaitForOthers() ABSL_LOCKS_EXCLUDED(mu_);
  Signal AwaitSignal() ABSL_LOCKS_EXCLUDED(mu_);
  // Does nothing. Before a step begins and after it has ended nothing of it needs a lock.
  void AssertAlone() const ABSL_ASSERT_EXCLUSIVE_LOCK(mu_) {}

  RunningStep& step_;
  Work& work_;
  Scheduler& scheduler_;
  const int runners_max_;

  bool runs_async_ = false;
  Ended ended_;
  std::atomic<int> active_{0};
  Runner first_runner_;

  Mutex mu_;
  std::vector<std::unique_ptr<Runner>> runners_ ABSL_GUARDED_BY(mu_);  // all but the first
  std::vector<Runner*> idle_runners_ ABSL_GUARDED_BY(mu_);             // of them
  std::vector<ReadyNode> offered_ ABSL_GUARDED_BY(mu_);                // last in, first out
  std::vector<std::shared_ptr<Invitation>> invitations_ ABSL_GUARDED_BY(mu_);
  int num_running_ ABSL_GUARDED_BY(mu_) = 0;       // threads in RunNodes, or invited
  bool caller_idle_ ABSL_GUARDED_BY(mu_) = false;  // Run's thread has nothing to do
  bool caller_blocked_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<Signal> signal_{Signal::kNone};  // to Run's thread; changed under mu_
  Condition caller_wakes_;

  static constinit thread_local Runner* running_here_;
};

}  // namespace penstock
