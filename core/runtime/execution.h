// SPDX-License-Identifier: Apache-2.0
//
// Execution: one step of one program, in flight. Pooled by the executor; private to this folder.
//
// A step begins on one thread: counts are plain, nothing is locked. It turns to shared mode (atomic
// counts) for good just before a second thread can see it: when an expensive node is offered to
// others, or a node starts that may end elsewhere. `active_` counts who is still busy in the step:
// threads that run its nodes or are invited to, and nodes that wait; who takes it to zero ends it.
//
// Values and counts stand in Iterations: one for what lies outside of loops, and one for each
// iteration in flight of each run of a loop. A thread works in one iteration at a time; what
// becomes ready in others it notes aside. An iteration of a loop ends when nobody holds it: threads
// at work in it, nodes noted, offered or waiting, loops begun inside it, the iteration before it,
// and, of the first, Enters yet to come. So a node in a loop costs what it costs outside.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
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

  struct Iteration;
  struct Frame;

  // A node that waits: for its Done, or for copies of its inputs.
  struct Wait {
    Execution* execution = nullptr;
    Iteration* iteration = nullptr;
    const Item* item = nullptr;
    std::optional<KernelContext> context;
    std::unique_ptr<Tensor[]> outputs;
    int64_t start_ns = 0;
    bool copied = false;  // the inputs are where they should be
    std::atomic<uint32_t> copies_left{0};
    std::atomic<bool> in_flight{false};
  };
  // One pass over the nodes of a loop, or over those outside of loops.
  struct Iteration {
    const Item* items = nullptr;                       // of its loop
    const Program::Loop* loop = nullptr;               // what it is a pass over
    std::unique_ptr<Tensor[]> inputs;                  // by slot; empty until the value comes
    std::unique_ptr<std::atomic<uint32_t>[]> pending;  // by node, as in Program
    std::unique_ptr<Wait[]> waits;                     // by Detail::wait
    std::unique_ptr<int64_t[]> ready_ns;               // by node, for statistics
    std::vector<Frame*> children;                      // loops begun in it, by Loop::child
    Frame* frame = nullptr;                            // null: outside of loops
    uint64_t number = 0;
    Iteration* next = nullptr;  // that has begun
    std::atomic<int> holds{0};  // outside of loops nobody counts
  };
  // One run of a loop.
  struct Frame {
    struct Deferred {
      const Item* item;
      Tensor value;
    };
    struct Constant {
      const Item* item = nullptr;  // the Enter; null: not yet
      Tensor value;                // invalid: dead
    };
    const Program::Loop* loop = nullptr;
    uint64_t id = 0;  // the same in all tasks
    Iteration* parent = nullptr;
    Iteration* oldest = nullptr;
    Iteration* newest = nullptr;
    int64_t in_flight = 0;
    uint32_t enters_left = 0;
    std::vector<Deferred> deferred;  // to the iteration after `newest`, which has to wait
    std::vector<Constant> constants;
    std::vector<bool> left;  // by exit: a value has gone out
  };
  // Those of one loop, in use and not. Grows to what is in flight at once.
  struct LoopPool {
    std::vector<std::unique_ptr<Iteration>> iterations;
    std::vector<std::unique_ptr<Frame>> frames;
    std::vector<Iteration*> idle_iterations;
    std::vector<Frame*> idle_frames;
  };

  // A node to run: index | kDead | kExpensive.
  struct Task {
    Iteration* iteration;
    uint32_t node;
  };
  // Nodes to run.
  struct Ready {
    Iteration* here = nullptr;        // where `cheap` and `expensive` are
    std::vector<uint32_t> cheap;      // last in, first out: their inputs are still in the cache
    std::vector<uint32_t> expensive;  // may go to another thread
    std::vector<Task> elsewhere;      // each holds its iteration
  };
  // A thread at work in the step.
  struct Runner {
    Execution* execution = nullptr;
    Ready ready;
    std::unique_ptr<Tensor[]> outputs;  // of the node being run; empty between nodes
    KernelContext::Params params;
    std::vector<NodeStats::Memory> memory;  // of the node that has run, in traced steps
    int nodes_to_clock = 0;                 // until the deadline is looked at
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
  std::string DescribeWaits() ABSL_LOCKS_EXCLUDED(flow_mu_);
  bool RegisterAbort() ABSL_LOCKS_EXCLUDED(mu_);

  // execution_threads.cc: who runs what.
  void InitRunner(Runner* runner);
  void RunLoop(Runner& runner);
  bool Next(Runner& runner, uint32_t* node);
  bool TakeShared(Runner& runner);
  bool MayDrop(const Runner& runner) const;
  void WorkIn(Runner& runner, Iteration& iteration);
  void TurnElsewhere(Runner& runner);
  void Offer(Ready& ready);
  void Share(absl::Span<const Task> tasks);
  void TakeBackInvitations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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
  Status Compute(const Item& item, Runner& runner, Tensor* outputs);
  Status CheckOutputs(const Item& item, const Tensor* outputs) const;
  void StartAsync(Iteration& it, const Item& item, int64_t start_ns);
  void AsyncEnded(Wait& wait, const Status& status);
  static void ReleaseInputs(Iteration& it, const Item& item);
  template <bool kPlain>
  void Propagate(const Item& item, Tensor* outputs, bool dead, Iteration& to, Ready& ready);
  template <bool kPlain>
  void Arrive(Iteration& it, uint32_t node, bool dead, Ready& ready);
  void ArriveAtMerge(Iteration& it, const Program::Edge& edge, Tensor* value, Ready& ready);
  void ArriveAtMerge(Iteration& it, uint32_t node, uint32_t change, Ready& ready);
  void Push(Iteration& it, uint32_t node, Ready& ready);
  Status ComputeRecorded(const Item& item, Runner& runner, Tensor* outputs);
  void Observe(Iteration& it, const Item& item, int64_t start_ns, const Tensor* outputs,
               std::vector<NodeStats::Memory> memory);
  static std::vector<NodeStats::Memory> NewOutputs(const Iteration& it, const Item& item,
                                                   const Tensor* outputs);
  static uint32_t IndexOf(const Iteration& it, const Item& item) {
    return static_cast<uint32_t>(&item - it.items);
  }

  // execution_flow.cc: Switch, Merge and the ops of loops.
  Status ComputeFlow(Iteration& it, const Item& item, Tensor* outputs);
  void RouteFlow(Iteration& it, const Item& item, Tensor* outputs, bool dead, Ready& ready);
  void Enter(Iteration& from, const Item& item, Tensor* outputs, bool dead, Ready& ready);
  void NextIteration(Iteration& it, const Item& item, Tensor* outputs, Ready& ready);
  void Exit(Iteration& it, const Item& item, Tensor* outputs, Ready& ready);
  Status DeadFetch(const Item& item) const;

  // Holds flow_mu_ if the step is shared. In a step that is not there is one thread.
  class ABSL_SCOPED_LOCKABLE FlowLock {
   public:
    explicit FlowLock(Execution& execution) ABSL_EXCLUSIVE_LOCK_FUNCTION(execution.flow_mu_);
    ~FlowLock() ABSL_UNLOCK_FUNCTION();
    FlowLock(const FlowLock&) = delete;
    FlowLock& operator=(const FlowLock&) = delete;

   private:
    Mutex* const mu_;  // null: not locked
  };
  // Does nothing. Before a step begins and after it has ended nothing of it needs a lock.
  void AssertAlone() const ABSL_ASSERT_EXCLUSIVE_LOCK(mu_, flow_mu_) {}

  // execution_loops.cc: when iterations and runs of loops begin and end.
  void InitIteration(const Program::Loop& loop, Iteration* it);
  void ResetCounts(Iteration* it, bool first);
  Frame& FrameOf(Iteration& parent, uint32_t loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flow_mu_);
  Iteration* BeginIteration(Frame& frame, Ready& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flow_mu_);
  Iteration* EndIteration(Iteration& it, Ready& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flow_mu_);
  Iteration* EndFrame(Frame& frame, Ready& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flow_mu_);
  void Hold(Iteration& it, int count);
  bool LetGo(Iteration& it);
  void LetGoLocked(Iteration* it, Ready& ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flow_mu_);
  void Release(Iteration& it, Ready& ready) ABSL_LOCKS_EXCLUDED(flow_mu_);
  void ClearLoops();
  std::string DescribeLoops();

  // execution_inputs.cc: inputs that need something done before a kernel sees them.
  Status ReadVariables(Iteration& it, const Item& item);
  // False: not yet, or the step has failed; the node comes back when its copies have ended.
  bool CopyInputs(Iteration& it, const Item& item);
  void CopyToDevice(const Item& item, Tensor& input);
  void CopyToHost(Wait& wait, Tensor& input);
  void CopyEnded(Wait& wait, const Status& status);

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
  Iteration root_;                                         // outside of loops
  Mutex flow_mu_;                                          // where loops begin and end
  std::vector<LoopPool> pools_ ABSL_GUARDED_BY(flow_mu_);  // by loop
  int frames_running_ ABSL_GUARDED_BY(flow_mu_) = 0;
  uint64_t steps_ = 0;
  bool observed_ = false;  // times are wanted, by the caller or to learn costs
  int64_t wall_offset_ns_ = 0;
  bool runs_async_ = false;
  Ended ended_;
  bool shared_ = false;
  std::atomic<bool> stopped_{false};    // nodes were dropped: the step has failed
  std::atomic<bool> committed_{false};  // nodes outside of loops are no longer dropped
  std::atomic<int> active_{0};
  std::optional<DeadlineTimer::Token> armed_;
  std::atomic<bool> abort_registered_{false};
  Cancellation::Token abort_token_ ABSL_GUARDED_BY(mu_) = 0;

  Runner first_runner_;
  Mutex mu_;  // locked before the cancellation's; never together with flow_mu_
  std::vector<std::unique_ptr<Runner>> runners_ ABSL_GUARDED_BY(mu_);  // all others
  std::vector<Runner*> idle_runners_ ABSL_GUARDED_BY(mu_);             // of them
  std::vector<Task> shared_tasks_ ABSL_GUARDED_BY(mu_);  // offered; last in, first out
  std::vector<std::shared_ptr<Invitation>> invitations_ ABSL_GUARDED_BY(mu_);
  int num_running_ ABSL_GUARDED_BY(mu_) = 0;       // threads in RunLoop, or invited
  bool caller_idle_ ABSL_GUARDED_BY(mu_) = false;  // Run's thread has nothing to do
  bool caller_blocked_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<Signal> signal_{Signal::kNone};  // to Run's thread; changed under mu_
  Condition caller_wakes_;

  static constinit thread_local Runner* running_here_;
};

}  // namespace penstock
