// SPDX-License-Identifier: Apache-2.0
//
// Training without parameter servers in the example programs: the flags --strategy, --elastic and
// --min_workers, and the nodes and options that they add to a program and to its training loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/allreduce/collective_replicas.h"
#include "client/allreduce/elastic_group.h"
#include "client/training.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace CLI {
class App;
}

namespace penstock::examples {

struct AllReduceFlags {
  std::string strategy = "ps";  // or "allreduce"; fashion_mnist has more strategies
  bool elastic = false;
  int min_workers = 0;  // if elastic: minimum number of workers; 0: more than half

  bool all_reduce() const { return strategy == "allreduce"; }
};

// Adds --strategy, with `note` at the end of its help.
void AddStrategyFlag(CLI::App& app, AllReduceFlags& flags, const std::string& note = "");
// Adds --elastic and --min_workers.
void AddElasticFlags(CLI::App& app, AllReduceFlags& flags);
// Returns InvalidArgument if the flags contradict each other or `task`, the task of this process.
Status CheckAllReduce(const AllReduceFlags& flags, const TaskConfig& task);

// The CollectiveReplicas of a program, if flags.all_reduce(), and their ElasticGroup, if
// flags.elastic.
class AllReduce {
 public:
  // Adds nothing unless flags.all_reduce(). `target` is the target of the training's session.
  // REQUIRES: CheckAllReduce accepts `flags` and `task`.
  AllReduce(client::Program& program, const AllReduceFlags& flags, const TaskConfig& task,
            const std::string& target);

  bool used() const { return replicas_.has_value(); }
  // Returns whether the workers, and so the chief, may change.
  bool elastic() const { return group_.has_value(); }
  // This function and the following ones REQUIRE used().
  client::CollectiveReplicas& replicas() { return *replicas_; }
  bool is_chief() const { return replicas_->is_chief(); }
  // Returns the number of this worker's batch for the step. No other worker or step gets this
  // number.
  int64_t BatchNumber(int64_t global_step) const;
  // Adds the op CollectiveReplicas::Agree. Call this after all variables were made.
  void AddAgree() { agree_ = replicas_->Agree(); }
  // Sets the options of the loop.
  void SetOptions(client::TrainingOptions* options);

 private:
  int workers_ = 1, worker_ = 0;
  std::optional<client::ElasticGroup> group_;
  std::optional<client::CollectiveReplicas> replicas_;
  Output agree_;
};

}  // namespace penstock::examples
