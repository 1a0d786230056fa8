// SPDX-License-Identifier: Apache-2.0
//
// NodeRunner: runs the nodes of a step: takes a thread's next ready node, prepares the node's
// inputs, runs its kernel, releases the inputs and passes the outputs on. Private to this folder.
//
// Ownership: borrows the executable and the other components of the step.
// Threads: any number of threads of the step use it, each with a Runner of its own. NodeRunner has
// no mutable state and takes no lock. For a cheap node it allocates no memory and formats no text.
// Invariants: a runner's outputs are empty when no node is running. A node that fails or is dropped
// passes no outputs on.
#pragma once

#include "core/runtime/iteration.h"
#include "core/runtime/propagation.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_loops.h"
#include "core/runtime/step_threads.h"
#include "core/runtime/waiting_nodes.h"

namespace penstock {

class NodeRunner final : public StepThreads::Work {
 public:
  // All arguments must outlive this object. The constructor does not use `threads`, which may be
  // constructed later.
  NodeRunner(const Executable& executable, RunningStep& step, StepLoops& loops,
             StepThreads& threads)
      : executable_(executable),
        step_(step),
        loops_(loops),
        threads_(threads),
        propagation_(executable, step),
        waiting_(executable, step, loops, threads) {}

  void InitRunner(Runner* runner) override;
  bool RunNodes(Runner& runner) override;
  void CheckDeadline() override;

 private:
  using Item = Executable::Item;
  static constexpr uint32_t kDead = Executable::kDead;

  bool Refill(Runner& runner);
  bool CheckClock(Runner& runner);
  void SwitchIteration(Runner& runner);
  bool MayDropReadyNodes(const Runner& runner) const;
  void Process(Runner& runner, uint32_t node);
  void ProcessSpecial(Runner& runner, uint32_t node);
  Status Compute(const Item& item, Runner& runner, Tensor* outputs);
  Status ComputeSpecial(const Item& item, Runner& runner, Tensor* outputs);
  void Route(Iteration& it, const Item& item, Tensor* outputs, bool dead, ReadyQueues& ready);
  void Fail(const Item& item, const Status& status, Tensor* outputs);

  const Executable& executable_;
  RunningStep& step_;
  StepLoops& loops_;
  StepThreads& threads_;
  const Propagation propagation_;
  WaitingNodes waiting_;
};

}  // namespace penstock
