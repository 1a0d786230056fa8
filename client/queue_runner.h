// SPDX-License-Identifier: Apache-2.0
//
// QueueRunners: the threads that keep a program's queues full. Each thread runs one enqueue op
// repeatedly, until the input ends (OutOfRange), an error occurs, or the coordinator requests a
// stop.
//
// When the last thread of a runner has reached the end of the input, its queues are closed:
// consumers get the remaining elements, and then OutOfRange. After a stop the queues are closed and
// pending operations are cancelled, so that steps of other clients that wait for the queues end
// too. The first error of a runner stops all runners.
//
// Call Add only while no other thread runs a session of the program. Borrows the program.
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

  // Adds a runner: each of `enqueues` (ops that put elements into `queues`) will run on `threads`
  // threads.
  void Add(const Outputs& enqueues, const Outputs& queues, int threads = 1,
           SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns OK if the queues give the same elements in each session. Otherwise InvalidArgument
  // names the cause: a runner with several threads or enqueue ops, or a shuffle without a seed, or
  // one that is not repeatable (ShuffleBatchOptions). Checks the nodes on which `taken` or an
  // enqueue op depends.
  Status CheckRepeatable(const Output& taken) const;

  // Starts all runners on threads of `coordinator`. `session`, `coordinator` and this object must
  // outlive the threads: call Coordinator::Join before any of them is destroyed.
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
