// SPDX-License-Identifier: Apache-2.0
//
// RunningStep: the state of a step: its arguments, whether it continues, and why it ended. Other
// classes run the nodes (NodeRunner) and the threads (StepThreads). Private to this folder.
//
// One object serves many steps, one after the other: all calls between Begin and End belong to one
// step. Ownership: Execution owns it; StepArgs are borrowed until End.
// Threads: the thread that begins or ends the step calls Begin and End. In between, any thread of
// the step may call the other functions.
// Invariants: (1) a step begins on one thread. Before a second thread can see the step, the first
// thread calls Share(); the step then stays shared. (2) The status of the first failure becomes the
// status of the cancellation, of the rendezvous and of the step. (3) A step whose nodes were
// dropped has failed. Locks: abort_mu_ is locked before the Cancellation's lock; while abort_mu_ is
// held, no other lock of this folder is taken. watch_mu_ is locked before the lock of StepLoops.
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
  // Waits for all work that kernels have launched on the device; an error of this work fails the
  // step. Undoes RegisterAbort. REQUIRES: no thread works in the step.
  void FinishWork() {
    running_id_.store(0, std::memory_order_relaxed);
    if (shared_ || device_asynchronous_ || abort_registered_.load(std::memory_order_relaxed)) {
      DeregisterAndSynchronize();
    }
  }
  // Ends the step and returns its status. If the step has failed, aborts its rendezvous. Call it
  // after FinishWork.
  Status End();

  int64_t step_id() const { return context_.step_id; }
  Device& device() const { return device_; }
  Scheduler& scheduler() const { return *options_.threads; }
  int64_t NowNanos() const { return options_.env->NowNanos(); }
  // Returns parameters with the fields set that are the same for all kernels of the step.
  KernelContext::Params KernelParams();

  // Returns whether more than one thread may work in the step.
  bool shared() const { return shared_; }
  void Share() {
    if (!shared_) BecomeShared();
  }

  // Returns the id of the running step; 0 if none is running. Any thread may call this.
  int64_t running_id() const { return running_id_.load(std::memory_order_relaxed); }
  // Calls `look` with the id of the running step, and keeps the step from ending until `look`
  // returns. Returns false without calling `look` if no step is running or it is not shared.
  bool Watch(absl::FunctionRef<void(int64_t step_id)> look) ABSL_LOCKS_EXCLUDED(watch_mu_);

  // Returns whether this step measures the time of each node, for StepArgs::stats or to learn the
  // nodes' costs.
  bool observed() const { return observed_; }
  // Returns whether the step is traced: its caller wants statistics.
  bool traced() const { return stats_ != nullptr; }
  // Returns the poller that the caller's thread uses while it waits; may be null.
  Poller* poller() const { return poller_; }
  // Returns null unless the step is traced.
  StepStatsCollector* stats() const { return stats_; }
  // Returns the account to which the step's tensors are charged; null: the task's account.
  MemoryAccount* memory() const { return memory_; }
  // Returns the difference between nanoseconds since 1970 and NowNanos(). Only in a traced step.
  int64_t wall_offset_ns() const { return wall_offset_ns_; }

  bool cancelled() const { return cancellation_->cancelled(); }
  // Returns OK while long loops of kernels should continue: until the step is cancelled or past its
  // deadline. After a commit, always returns OK.
  Status CheckContinues() const override;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Records that nodes of a cancelled step are dropped without running.
  void DropNodes() { stopped_.store(true, std::memory_order_relaxed); }
  // Returns whether the step has committed. After a commit, nodes outside of loops are not dropped
  // any more.
  bool committed() const { return committed_.load(std::memory_order_relaxed); }
  void Commit() { committed_.store(true, std::memory_order_relaxed); }

  // Fails the step with `status`, to which it adds the name of `node`.
  void Fail(const Node& node, const Status& status);
  // Fails the step: cancels it and aborts its rendezvous. `why` is not OK.
  void Stop(const Status& why);
  bool has_deadline() const { return context_.deadline_ns != 0; }
  int64_t deadline_ns() const { return context_.deadline_ns; }  // 0: no deadline
  // Returns whether the deadline has passed; false if the step is cancelled already. REQUIRES:
  // has_deadline().
  bool DeadlinePassed() const { return NowNanos() >= deadline_ns() && !cancelled(); }
  // Makes any cancellation of the step abort the rendezvous, which ends the waits of nodes. Call
  // this before a node waits; only the first call in a step registers. Returns false if the step is
  // cancelled already.
  [[nodiscard]] bool RegisterAbort() ABSL_LOCKS_EXCLUDED(abort_mu_);

 private:
  void DeregisterAndSynchronize();
  void BecomeShared() ABSL_LOCKS_EXCLUDED(watch_mu_);
  // Does nothing. Call it before a step begins or after it has ended, when no lock is needed.
  void AssertAlone() const ABSL_ASSERT_EXCLUSIVE_LOCK(abort_mu_) {}

  const ExecutorOptions options_;
  Device& device_;
  const bool device_asynchronous_;
  Cancellation own_cancellation_;  // for steps whose caller gives none
  ResourceStore own_step_resources_;

  StepContext context_;
  StepStatsCollector* stats_ = nullptr;
  MemoryAccount* memory_ = nullptr;
  Poller* poller_ = nullptr;
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
