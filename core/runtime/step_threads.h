// SPDX-License-Identifier: Apache-2.0
//
// StepThreads: manages the threads of a step: which threads take part, which nodes they offer to
// each other, and when the step has ended. It calls a Work to run the nodes. Private to this
// folder.
//
// A step begins on one thread. A thread that has more expensive nodes than it can run offers them,
// and invites threads of the scheduler, up to its number of threads. A thread that has no node left
// takes offered nodes, or leaves the step. `active_` counts the threads that run nodes of the step
// or are invited to do so, and the nodes that wait. The thread that takes the count to zero ends
// the step. A runner on a thread of the scheduler runs for one slice (2 ms). Then it queues behind
// the other scheduled closures, so that other steps and clients' calls get the threads, too.
//
// Ownership: owns the runners and the offered nodes; borrows scheduler, step and Work. Threads: any
// thread that is active in the step may call all public functions except Begin, Run, RunAsync and
// Clear.
// Invariants: (1) an invitation is either accepted or taken back. The step never waits for a thread
// that has not accepted its invitation, because that thread may run other work, which might itself
// wait for this step. (2) A thread that finds no offered node decrements num_running_ before it
// releases the lock, so that a thread that offers a node later knows to invite another thread.
// Locks: mu_. While it is held, only a Condition's Notify is called.
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
  // The work of the threads.
  class Work {
   public:
    virtual ~Work() = default;
    // Initialises a new runner.
    virtual void InitRunner(Runner* runner) = 0;
    // Runs nodes until TakeOffered(runner) returns false, then returns true. If `runner` yields,
    // returns false when the slice has ended; nodes may then be left in the runner.
    virtual bool RunNodes(Runner& runner) = 0;
    // Fails the step if its deadline has passed.
    virtual void CheckDeadline() = 0;
  };
  using Ended = absl::AnyInvocable<void() &&>;

  // Both arguments must outlive it.
  StepThreads(RunningStep& step, Work& work);
  StepThreads(const StepThreads&) = delete;
  StepThreads& operator=(const StepThreads&) = delete;

  // Begins a step; call it after RunningStep::Begin. Returns the first runner, to which the caller
  // adds the step's first nodes.
  Runner& Begin() {
    AssertAlone();
    active_.store(1, std::memory_order_relaxed);
    num_running_ = 1;
    caller_idle_ = false;
    return first_runner_;
  }
  // Runs the step on this thread and others; returns when no thread or node is active in it.
  void Run() {
    runs_async_ = false;
    first_runner_.yields = false;  // the thread belongs to the caller
    RunHere(first_runner_);
    if (step_.shared()) WaitForOthers();
  }
  // Runs the step on the scheduler's threads. Calls `ended` on one of them when no thread or node
  // is active. If `starts_here`, this thread also runs nodes, for at most one slice; the step may
  // have ended when RunAsync returns.
  void RunAsync(Ended ended, bool starts_here);
  // Drops the nodes that a failed step still offers. Call this after the step has ended.
  void Clear();

  // Offers the expensive nodes in `ready` to other threads. If this thread has no other node to
  // run, it keeps one of them. TakeOffered returns nodes that no other thread has taken. If the
  // scheduler has only one thread, moves the nodes to `ready.cheap` instead.
  void Offer(ReadyQueues& ready) ABSL_LOCKS_EXCLUDED(mu_);
  // Offers nodes, each with a hold on its iteration, and invites threads to run them. May be called
  // on a thread that runs no nodes itself.
  void Share(absl::Span<const ReadyNode> nodes) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives an offered node to `runner`, which has no node left. Returns false if no node is offered;
  // RunNodes must then return.
  bool TakeOffered(Runner& runner) { return step_.shared() && TakeShared(runner); }

  // Keeps the step from ending until Leave is called. Call this for a node that begins to wait.
  // Makes the step shared. REQUIRES: the caller's thread is active in the step.
  void AddActive() {
    step_.Share();
    active_.fetch_add(1, std::memory_order_relaxed);
  }
  // Undoes AddActive, on any thread. The step may end at once, so the caller must not access it any
  // more. May be called inside a callback of the step's cancellation or timer.
  void Leave() { Leave(/*from_runner=*/false); }

  // Returns how many threads and waiting nodes are active in the step now.
  int active() const { return active_.load(std::memory_order_relaxed); }

  // Returns the ready queues of this step's runner on this thread, or null if this thread has no
  // runner of this step.
  ReadyQueues* ReadyHere() const {
    Runner* const runner = thread_runner_;
    return runner != nullptr && runner->threads == this ? &runner->ready : nullptr;
  }

 private:
  struct Invitation {
    explicit Invitation(StepThreads* to) : threads(to) {}
    std::atomic<StepThreads*>
        threads;  // the inviting step; null after the invitation was accepted or taken back
  };
  enum class Signal { kNone, kWork, kEnded };

  bool RunHere(Runner& runner);
  void RunSlice(Runner& runner) ABSL_LOCKS_EXCLUDED(mu_);
  Runner* TakeRunner() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeShared(Runner& runner) ABSL_LOCKS_EXCLUDED(mu_);
  void Wake(Signal signal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CancelInvitations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(bool from_runner) ABSL_LOCKS_EXCLUDED(mu_);
  void WaitForOthers() ABSL_LOCKS_EXCLUDED(mu_);
  Signal AwaitSignal() ABSL_LOCKS_EXCLUDED(mu_);
  // Does nothing. Call it before a step begins or after it has ended, when no lock is needed.
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
  std::vector<std::unique_ptr<Runner>> runners_ ABSL_GUARDED_BY(mu_);  // all except first_runner_
  std::vector<Runner*> idle_runners_ ABSL_GUARDED_BY(mu_);             // the unused runners
  std::vector<ReadyNode> offered_ ABSL_GUARDED_BY(mu_);                // last in, first out
  std::vector<std::shared_ptr<Invitation>> invitations_ ABSL_GUARDED_BY(mu_);
  int num_running_ ABSL_GUARDED_BY(mu_) = 0;       // threads in RunNodes, or invited
  bool caller_idle_ ABSL_GUARDED_BY(mu_) = false;  // Run's thread has no node to run
  bool caller_blocked_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<Signal> signal_{Signal::kNone};  // for Run's thread; changed under mu_
  Condition caller_wakes_;

  static constinit thread_local Runner* thread_runner_;  // the runner that runs on this thread
};

}  // namespace penstock
