// SPDX-License-Identifier: Apache-2.0
//
// WaitingNodes: runs the nodes of a step that wait: those with asynchronous kernels, and those
// whose inputs must first be copied between host and device. Private to this folder.
//
// Ownership: borrows everything; the state of a waiting node is a NodeWait of its iteration.
// Threads: nodes start on threads of the step and end on any thread. Takes no lock of its own.
// Invariants: a node that waits counts as active in the step and holds its iteration, so that
// neither step nor iteration ends before the node.
#pragma once

#include <utility>

#include "core/runtime/iteration.h"
#include "core/runtime/propagation.h"
#include "core/runtime/running_step.h"
#include "core/runtime/step_loops.h"
#include "core/runtime/step_threads.h"

namespace penstock {

class WaitingNodes {
 public:
  WaitingNodes(const Executable& executable, RunningStep& step, StepLoops& loops,
               StepThreads& threads)
      : executable_(executable),
        step_(step),
        loops_(loops),
        threads_(threads),
        propagation_(executable, step) {}

  // Starts a node with kAsync, or drops it if the step is cancelled already. When the kernel calls
  // its Done, the node passes its outputs on or fails the step.
  void StartAsync(Iteration& it, const Executable::Item& item, int64_t start_ns);
  // Copies the inputs of a node with kCopiesInputs to the memory that the kernel needs. Returns
  // false if the node cannot run now, because copies to the host have not ended, or because an
  // error has failed the step. When the copies have ended, offers the node to the step's threads
  // again.
  [[nodiscard]] bool CopyInputs(Iteration& it, const Executable::Item& item);

 private:
  void AsyncEnded(NodeWait& wait, const Status& status);
  void PassOutputsOn(NodeWait& wait);
  void CopyToDevice(const Executable::Item& item, Tensor& input);
  void CopyToHost(NodeWait& wait, Tensor& input);
  void CopyEnded(NodeWait& wait, const Status& status);
  void RunAgain(NodeWait& wait);

  const Executable& executable_;
  RunningStep& step_;
  StepLoops& loops_;
  StepThreads& threads_;
  const Propagation propagation_;
};

}  // namespace penstock
