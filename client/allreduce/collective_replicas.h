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
// If all workers' batches have the same size, a step equals a step with one big batch, except for
// rounding. Its result has the same bits in every run, whichever worker arrives first. Small
// gradients travel together in buckets, in the order in which the backward pass computes them, so
// most gradients have been averaged when the backward pass ends.
//
// All workers must build the same program in the same order: matching collectives are found by
// their position in that order. The sessions must name all workers (no device filters), and run one
// step at a time. If a worker is lost, the steps of all others end with an error that names it. If
// a worker closes its session because its data have ended, the others' steps end with OutOfRange.
// With an ElasticGroup the others go on without a lost worker. An invalid argument sets the
// program's error. This error, and errors of the nodes, name the line of the call. Borrows the
// program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/allreduce/elastic_group.h"
#include "client/gradients.h"
#include "client/program.h"

namespace penstock::client {

class CollectiveReplicas {
 public:
  struct Options {
    int workers = 1;
    int worker = 0;           // the index of this worker, in [0, workers); 0 is the chief
    std::string device = "";  // the worker's task; "": /job:worker/task:WORKER
    int64_t group_key = 1;    // must differ between trainings that share the cluster
    // The maximum size of a bucket with several gradients. Smaller buckets start averaging earlier,
    // larger ones need fewer messages.
    int64_t bucket_bytes = 4 << 20;
    // Borrowed. If not null, the members of this group train; their number may fall and rise again
    // (elastic_group.h). Then group_key has no effect, and Average(value) must be called before
    // Average(gradients): an update begins only when all averages of the step have arrived.
    ElasticGroup* group = nullptr;
  };
  CollectiveReplicas(Program& program, const Options& options,
                     SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  bool is_chief() const;
  // Returns a device function that puts every node on this worker's task.
  GraphBuilder::DeviceFunction Devices() const;

  // Returns the mean over all workers of each gradient, as a dense gradient. A variable without a
  // gradient stays without one; the shapes of the other variables must be fully known.
  std::vector<VariableGradient> Average(const std::vector<VariableGradient>& gradients,
                                        SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Returns the mean over all workers of `value`, such as each worker's loss.
  Output Average(Output value, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Returns an op that sets the variables of every worker to the chief's values, except local
  // variables and variables made after this call. All workers must run it together. With a group,
  // calls ElasticGroup::SetAgree, and the group chooses the worker that sends its values.
  Output Agree(SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Returns an op that completes only when every worker has reached it.
  Output Barrier(SourceLine line = {__builtin_FILE(), __builtin_LINE()});

 private:
  struct Bucket {
    std::vector<size_t> gradients;  // indices into MakeBuckets' argument
    int64_t bytes = 0;
  };
  std::vector<Bucket> MakeBuckets(const std::vector<VariableGradient>& gradients) const;
  int64_t NewInstance() { return next_instance_++; }
  // Adds the collective `op` of a fixed group, or its V2 form of an elastic one.
  Output Collective(const std::string& op, const Outputs& input, int64_t instance, Attrs attrs,
                    const std::string& name = "", const std::optional<Shape>& shape = {});
  Output AllReduce(Output value, const char* final_op, const std::string& name);
  Output Send(const Variable& variable, int64_t instance);
  Output Receive(const Variable& variable, int64_t instance);
  Output AgreeInGroup();
  void BeginUpdate(std::vector<VariableGradient>* averages);

  Program& program_;
  const Options options_;
  int64_t next_instance_ = 1;
  Outputs reduced_;             // the results of all averages
  bool update_begins_ = false;  // whether the group's update was added
};

}  // namespace penstock::client
