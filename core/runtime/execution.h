// SPDX-License-Identifier: Apache-2.0
//
// Execution: one step of one program, in flight. Pooled by the executor; private to this folder.
//
// A step begins on one thread: counts are plain, nothing is locked. It turns to shared mode (atomic
// counts) for good just before a second thread can see it: when an expensive node is offered to
// others, or a node starts that may end elsewhere. `active_` counts who is still busy in the step:
// threads that run its nodes or are invited to, and nodes that wait; who takes it to zero ends it.
// Graphs without loops have one Iteration; loops will have one per iteration of a frame.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/runtime/deadline_timer.h"
#include "core/runtime/executor.h"
#include "core/runtime/program.h"

namespace penstock {

class Execution {
 public:
  using Ended = absl::AnyInvocable<void(Status) &&>;

  Execution(const Program& program, const ExecutorOptions& options);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Runs the step on this thread and others.
  Status Run(const StepArgs& args);
  // Runs it on the pool. When `ended` is called the object is free for another step.
  void RunAsync(const StepArgs& args, Ended ended);

 private:
  using Item = Program::Item;
  static constexpr uint32_t kDead = Program::kDead;

  // Where values and counts of one pass over the graph stand.
  struct Iteration {
    std::unique_ptr<Tensor[]> inputs;                  // by slot; empty until the value comes
    std::unique_ptr<std::atomic<uint32_t>[]> pending;  // by node, as in Program
  };
  // Nodes to run: index | kDead.
  struct Ready {
    std::vector<uint32_t> cheap;      // last in, first out: their inputs are still in the cache
    std::vector<uint32_t> expensive;  // may go to another thread
  };
  // A thread at work in the step.
  struct Runner {
    Execution* execution = nullptr;
    Ready ready;
    std::unique_ptr<Tensor[]> outputs;  // of the node being run; empty between nodes
    KernelContext::Params params;
    int nodes_to_clock = 0;  // until the deadline is looked at
  };
  // A node that waits: for its Done, or for copies of its inputs.
  struct Wait {
    std::optional<KernelContext> context;
    std::unique_ptr<Tensor[]> outputs;
    int64_t start_ns = 0;
    bool copied = false;  // the inputs are where they should be
    std::atomic<uint32_t> copies_left{0};
    std::atomic<bool> in_flight{false};
  };
  // To a thread of the pool, to help. Until it has come the invitation may be taken back: the step
  // does not wait for threads that are busy elsewhere, perhaps with waiting for this very step.
  struct Invitation {
    explicit Invitation(Execution* e) : execution(e) {}
    std::atomic<Execution*> execution;  // null: accepted, or taken back
  };
  enum class Signal { kNone, kWork, kEnded };

  // execution.cc: the step.
  void Begin(const StepArgs& args);
  Status End();
  void Clear();
  void Fail(const Item& item, const Status& status);
  void Stop(const Status& why);
  void CheckDeadline();
  std::string DescribeWaits() const;
  bool RegisterAbort();

  // execution_threads.cc: who runs what.
  void InitRunner(Runner* runner);
  void RunLoop(Runner& runner);
  bool Next(Runner& runner, uint32_t* node);
  bool TakeShared(const Runner& runner, uint32_t* node);
  void Offer(Ready& ready);
  void Share(absl::Span<const uint32_t> nodes);
  void TakeBackInvitations();
  void RunOnPool();
  void WaitForOthers();
  Signal AwaitSignal();
  void AddActive();
  void Leave(bool from_runner);
  // The queues of the runner of this step that is on this thread, or null.
  Ready* ReadyHere();

  // execution_nodes.cc: what happens to a node.
  void Process(Runner& runner, uint32_t node);
  void ProcessSpecial(Runner& runner, uint32_t node);
  Status Compute(const Item& item, KernelContext::Params* params, Tensor* outputs);
  Status CheckOutputs(const Item& item, const Tensor* outputs) const;
  void StartAsync(const Item& item, int64_t start_ns);
  void AsyncEnded(const Item& item, const Status& status);
  void ReleaseInputs(const Item& item);
  template <bool kPlain>
  void Propagate(const Item& item, Tensor* outputs, bool dead, Ready& ready);
  template <bool kPlain>
  void Arrive(uint32_t node, bool dead, Ready& ready);
  void Observe(const Item& item, int64_t start_ns, const Tensor* outputs);
  uint32_t IndexOf(const Item& item) const {
    return static_cast<uint32_t>(&item - &program_.item(0));
  }

  // execution_inputs.cc: inputs that need something done before a kernel sees them.
  Status ReadVariables(const Item& item);
  // False: not yet, or the step has failed; the node comes back when its copies have ended.
  bool CopyInputs(const Item& item);
  void StartCopy(const Item& item, uint32_t input, bool to_host);
  void CopyEnded(const Item& item, const Status& status);

  // Fixed.
  const Program& program_;
  const ExecutorOptions options_;
  Device& device_;
  DeadlineTimer& timer_;
  const int runners_max_;

  // Of the step.
  StepArgs args_;
  StepContext step_;
  Cancellation* cancellation_ = nullptr;
  Cancellation own_cancellation_;
  ResourceStore own_step_resources_;
  Iteration root_;
  std::unique_ptr<Wait[]> waits_;  // by Detail::wait
  uint64_t steps_ = 0;
  bool observed_ = false;                // times are wanted, by the caller or to learn costs
  std::unique_ptr<int64_t[]> ready_ns_;  // by node, for statistics
  int64_t wall_offset_ns_ = 0;
  bool runs_async_ = false;
  Ended ended_;
  bool shared_ = false;
  std::atomic<bool> stopped_{false};  // nodes were dropped: the step has failed
  std::atomic<int> active_{0};
  std::optional<DeadlineTimer::Token> armed_;
  std::atomic<bool> abort_registered_{false};
  Cancellation::Token abort_token_ = 0;

  Runner first_runner_;
  std::mutex mu_;
  std::vector<std::unique_ptr<Runner>> runners_;  // all others
  std::vector<Runner*> idle_runners_;             // of them
  std::vector<uint32_t> shared_nodes_;            // offered; last in, first out
  std::vector<std::shared_ptr<Invitation>> invitations_;
  int num_running_ = 0;       // threads in RunLoop, or invited
  bool caller_idle_ = false;  // Run's thread has nothing to do
  bool caller_blocked_ = false;
  std::atomic<Signal> signal_{Signal::kNone};  // to Run's thread; changed under mu_
  std::condition_variable caller_wakes_;

  static constinit thread_local Runner* running_here_;
};

}  // namespace penstock
