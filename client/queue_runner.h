// SPDX-License-Identifier: Apache-2.0
//
// QueueRunners: the threads that keep a program's queues full. Each runs one enqueue op again and
// again, until the input ends (OutOfRange), an error comes, or the coordinator stops.
//
// When the last thread of a runner has reached the end of the input, its queues are closed:
// consumers get the elements that are left, and then OutOfRange. After a stop the queues are closed
// and pending operations cancelled, so that steps of other clients end too. The first error of a
// runner stops all runners.
//
// Adding nodes is for one thread, before sessions of the program run on others. Borrows the
// program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/coordinator.h"
#include "client/program.h"
#include "client/session.h"

namespace penstock::client {

class QueueRunners {
 public:
  explicit QueueRunners(Program& program) : program_(program) {}

  Program& program() const { return program_; }

  // A runner: each of `enqueues` (ops that put something into `queues`) will run on `threads`
  // threads.
  void Add(const Outputs& enqueues, const Outputs& queues, int threads = 1);

  // OK if the queues give the same elements in each session. Otherwise InvalidArgument names the
  // cause: a runner with several threads or enqueue ops, or a shuffle without seeds or that is not
  // repeatable (ShuffleBatchOptions), before `taken` or before an enqueue op.
  Status CheckRepeatable(const Output& taken) const;

  // Starts all. `session`, `coordinator` and this outlive the threads: Join first.
  void Start(Session& session, Coordinator& coordinator) const;

 private:
  struct Runner {
    std::vector<TensorRef> enqueues;
    std::vector<TensorRef> close, cancel;  // ops, one per queue
    int threads;
  };

  Program& program_;
  std::vector<Runner> runners_;
};

}  // namespace penstock::client
