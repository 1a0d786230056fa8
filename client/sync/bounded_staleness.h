// SPDX-License-Identifier: Apache-2.0
//
// BoundedStaleness: asynchronous training in which no worker gets more than `bound` steps ahead of
// the slowest one (stale synchronous parallel, Ho et al. 2013). Every worker runs the same program
// in its own session:
//
//   BoundedStaleness bounded(program, {.bound = 2, .workers = 4, .worker = 1});
//   const Output update = optimizer.ApplyGradients(program, gradients, program.GlobalStep());
//   const Output train = bounded.Apply(update);
//   TrainingLoop loop(program, {.train = train, ...}, options);
//   loop.AddHook(&bounded);
//
// Each worker has a clock, the number of steps that it has finished, on the device of the global
// step. Each step first applies its update, which raises the worker's clock, and then waits until
// the clock is at most `bound` ahead of the clock of the slowest worker that counts (see below). So
// clocks differ by at most bound + 1. The wait is a part of the step; a signal, the step's timeout
// and the end of the session end it. With bound 0 the workers take their steps in lockstep.
//
// A worker delays the others only while it counts: from its first step until its loop ends, which
// is after the last save. A worker that dies or cannot be reached during a step stops counting as
// soon as the parameter server notices that (docs/failures.md). A worker that stops between two
// steps, or is too slow, stops counting when another worker waits for it and it has not finished a
// step for timeout_seconds. A worker that comes back begins with the clock of the slowest other
// one. If its process was only paused during a step, the update of this step may be more stale than
// `bound`. When the parameter server restarts, all clocks begin at 0 again; a replicated server
// keeps them.
//
// If a worker has several concurrent steps, each of them waits, so the worker may be ahead by that
// many more steps. An invalid argument sets the program's error. This error, and errors of the
// nodes, name the line of the call. A TrainingHook; used by one loop. Borrows the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/program.h"
#include "client/training_hook.h"

namespace penstock::client {

struct BoundedStalenessOptions {
  int64_t bound = 0;  // in steps; at least 0
  int workers = 1;    // the same for all workers
  int worker = 0;     // the index of this worker, in [0, workers)
  // This worker does not wait for a worker that has not finished a step for this long. Should be
  // longer than a step of the slowest worker, and longer than the pause of a worker between two
  // steps, such as for an evaluation. 0: no limit; then a worker that hangs between its steps stops
  // the others.
  double timeout_seconds = 60;
  std::string task = "";  // the name of this worker's task, shown to people
};

class BoundedStaleness : public TrainingHook {
 public:
  using Options = BoundedStalenessOptions;
  BoundedStaleness(Program& program, const Options& options,
                   SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns the train op of a step whose update is `update`. Call it once.
  Output Apply(Output update, SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns the clocks, int64[workers], and whether each worker counts, bool[workers]. REQUIRES:
  // Apply was called.
  const Outputs& clocks() const { return clocks_; }
  // Return the number of this worker's steps in this process, how many of them have waited, and for
  // how long in total.
  int64_t steps() const { return steps_; }
  int64_t waits() const { return waits_; }
  double waited_seconds() const { return waited_seconds_; }
  // Returns a text such as "staleness bound 2: 30 of 500 steps waited for slower workers, 4.2 s in
  // total".
  std::string Describe() const;

  Status SessionReady(Session& session, int64_t global_step) override;
  Outputs ExtraFetches(int64_t global_step) override { return {waited_}; }
  void Fetched(std::vector<Tensor> values) override;
  Status End(Session& session, int64_t global_step) override;

 private:
  Program& program_;
  const Options options_;
  Output waited_;  // how long the step has waited, in seconds
  Output leave_;
  Outputs clocks_;
  int64_t steps_ = 0, waits_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace penstock::client
