// SPDX-License-Identifier: Apache-2.0
//
// RunningStep: the step itself: what it was given, whether it goes on, and why it ended. It knows
// nothing of nodes and threads. Private to this folder.
//
// Used for one step after the other: everything between Begin and End is of one step.
// Ownership: Execution owns it; StepArgs are borrowed until End.
// Threads: Begin, End and what they change belong to the one thread that begins or ends the step.
// In between any thread of the step calls the rest.
// Invariants: (1) a step begins on one thread. It is shared, for good, from just before a second
// thread can see it: whoever makes that possible calls Share() first. (2) The first failure counts:
// its status is that of the cancellation, of the rendezvous and of the step. (3) A step that is
// stopped has failed: nodes of it were dropped.
// Locks: abort_mu_ is locked before the cancellation's; nothing of this folder is locked inside it.
// watch_mu_ is locked before StepLoops'.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/op/kernel.h"
#include "core/runtime/step_args.h"

namespace penstock {

class RunningStep final : public LoopWatch {
 public:
  explicit RunningStep(const ExecutorOptions& options);
  RunningStep(const RunningStep&) = delete;
  RunningStep& operator=(const RunningStep&) = delete;

  void Begin(const StepArgs& args);
  // Waits for what kernels have launched on the device; an error of it fails the step. Takes back
  // what RegisterAbort has registered. REQUIRES: no thread is at work in the step.
  void Settle() {
    running_id_.store(0, std::memory_order_relaxed);
    if (shared_ || device_asynchronous_ || abort_registered_.load(std::memory_order_relaxed)) {
      SettleLeftovers();
    }
  }
  // Returns the step's status, after Settle.
  Status End();

  int64_t step_id() const { return context_.step_id; }
  Device& device() const { return device_; }
  Scheduler& scheduler() const { return *options_.threads; }
  int64_t NowNanos() const { return options_.env->NowNanos(); }
  // The parameters that all kernels of the step share; the caller adds those of the node.
  KernelContext::Params KernelParams();

  // More than one thread may be at work in the step.
  bool shared() const { return shared_; }
  void Share() {
    if (!shared_) BecomeShared();
  }

  // For threads that have no part in the step. The id of the step that runs; 0: none does.
  int64_t running_id() const { return running_id_.load(std::memory_order_relaxed); }
  // Calls `look` with the id of the step while it is shared: it does not end meanwhile. False, and
  // `look` is not called, if no step runs or it is not shared.
  bool Watch(absl::FunctionRef<void(int64_t step_id)> look) ABSL_LOCKS_EXCLUDED(watch_mu_);

  // Nodes are timed: for the caller, or to learn what they cost.
  bool observed() const { return observed_; }
  // The caller wants statistics.
  bool traced() const { return stats_ != nullptr; }
  // Null unless the step is traced.
  StepStatsCollector* stats() const { return stats_; }
  // The account that its tensors are charged to; null: the task's.
  MemoryAccount* memory() const { return memory_; }
  // The difference between nanoseconds since 1970 and NowNanos(), in a traced step.
  int64_t wall_offset_ns() const { return wall_offset_ns_; }

  bool cancelled() const { return cancellation_->cancelled(); }
  // Long loops of kernels go on until the step is cancelled or past its deadline; after a commit to
  // their end.
  Status GoesOn() const override;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Notes that nodes of a step that is cancelled are not run.
  void DropNodes() { stopped_.store(true, std::memory_order_relaxed); }
  // From a commit on, nodes outside of loops are no longer dropped.
  bool committed() const { return committed_.load(std::memory_order_relaxed); }
  void Commit() { committed_.store(true, std::memory_order_relaxed); }

  // Fails the step because of `node`, which the status names.
  void Fail(const Node& node, const Status& status);
  // Fails the step: cancels it and aborts its rendezvous. `why` is not OK.
  void Stop(const Status& why);
  bool has_deadline() const { return context_.deadline_ns != 0; }
  int64_t deadline_ns() const { return context_.deadline_ns; }  // 0: none
  // False for a step that is cancelled already.
  bool DeadlinePassed() const { return NowNanos() >= deadline_ns() && !cancelled(); }
  // To be called before a node waits: has a cancellation, wherever it comes from, reach what waits
  // at the rendezvous. Registers once per step. Returns false if the step is cancelled already.
  [[nodiscard]] bool RegisterAbort() ABSL_LOCKS_EXCLUDED(abort_mu_);

 private:
  void SettleLeftovers();
  void BecomeShared() ABSL_LOCKS_EXCLUDED(watch_mu_);
  // Does nothing. Before a step begins and after it has ended nothing of it needs a lock.
  void AssertAlone() const ABSL_ASSERT_EXCLUSIVE_LOCK(abort_mu_) {}

  const ExecutorOptions options_;
  Device& device_;
  const bool device_asynchronous_;
  Cancellation own_cancellation_;  // of steps that bring none
  ResourceStore own_step_resources_;

  StepContext context_;
  StepStatsCollector* stats_ = nullptr;
  MemoryAccount* memory_ = nullptr;
  Cancellation* cancellation_ = nullptr;
  uint64_t steps_ = 0;
  int64_t wall_offset_ns_ = 0;
  bool observed_ = false;
  bool shared_ = false;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> committed_{false};
  std::atomic<bool> abort_registered_{false};
  std::atomic<int64_t> running_id_{0};
  Mutex watch_mu_;
  bool watchable_ ABSL_GUARDED_BY(watch_mu_) = false;
  Mutex abort_mu_;
  Cancellation::Token abort_token_ ABSL_GUARDED_BY(abort_mu_) = 0;
};

}  // namespace penstock
