// SPDX-License-Identifier: Apache-2.0
//
// CollectiveReplicas: synchronous training without parameter servers. Every worker runs the same
// program in a session with its own task, holds all variables itself, and the workers average their
// gradients in each step:
//
//   CollectiveReplicas replicas(program, {.workers = 4, .worker = 1});
//   const auto scope = program.DeviceFunctionScope(replicas.Devices());
//   ... variables, loss ...
//   const auto gradients = replicas.Average(optimizer.ComputeGradients(program, loss));
//   Output train = optimizer.ApplyGradients(program, gradients, program.GlobalStep());
//   TrainingLoop loop(program, {.train = train, ...},
//                     {.is_chief = replicas.is_chief(), .agree = replicas.Agree()});
//
// With batches of equal size a step is the step of one big batch, but for rounding; and it has the
// same bits each time, whoever comes first. Small gradients travel together in buckets, in the
// order in which the backward pass makes them: so most have been averaged when its end comes.
//
// All workers must build the same program in the same order: that is how what belongs together is
// found. The sessions must name all workers (no device filters), and run one step at a time. A
// worker that is lost ends the step of all others with an error that names it; one that closes its
// session, because its data have ended, ends them with OutOfRange. Mistakes become the program's
// error. Borrows the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

class CollectiveReplicas {
 public:
  struct Options {
    int workers = 1;
    int worker = 0;           // this one, in [0, workers); 0 is the chief
    std::string device = "";  // of its task; "": /job:worker/task:WORKER
    int64_t group_key = 1;    // another one for each training that shares the cluster
    // Gradients are averaged together up to so many bytes. Less begins earlier, more has fewer
    // messages.
    int64_t bucket_bytes = 4 << 20;
  };
  CollectiveReplicas(Program& program, const Options& options);

  bool is_chief() const { return options_.worker == 0; }
  // Puts every node on this worker's task.
  GraphBuilder::DeviceFunction Devices() const;

  // The mean of all workers' gradients; dense.
  std::vector<VariableGradient> Average(const std::vector<VariableGradient>& gradients);
  // The mean of a number that each worker has, such as its loss.
  Output Average(Output value);
  // An op that gives all shared variables that exist now the chief's values, at every worker. All
  // must run it together.
  Output Agree();
  // An op that ends when all workers have come to it.
  Output Barrier();

 private:
  struct Bucket {
    std::vector<size_t> gradients;  // their numbers
    int64_t bytes = 0;
  };
  std::vector<Bucket> MakeBuckets(const std::vector<VariableGradient>& gradients) const;
  Attrs Keys();
  Output AllReduce(Output value, const char* final_op, const std::string& name);
  Output Transfer(const Variable& variable);

  Program& program_;
  const Options options_;
  int64_t next_instance_ = 1;
};

}  // namespace penstock::client
