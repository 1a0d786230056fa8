// SPDX-License-Identifier: Apache-2.0
//
// Training without parameter servers in the example programs: the flags --strategy, --elastic and
// --min_workers, and what they add to a program and to its training loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/collective_replicas.h"
#include "client/elastic_group.h"
#include "client/training.h"
#include "core/base/status.h"
#include "distributed/cluster/cluster_spec.h"

namespace CLI {
class App;
}

namespace penstock::examples {

struct AllReduceFlags {
  std::string strategy = "ps";  // or allreduce; fashion_mnist has more
  bool elastic = false;
  int min_workers = 0;  // with elastic; 0: more than half

  bool all_reduce() const { return strategy == "allreduce"; }
};

// Adds --strategy, with `note` at the end of its help.
void AddStrategyFlag(CLI::App& app, AllReduceFlags& flags, const std::string& note = "");
// Adds --elastic and --min_workers.
void AddElasticFlags(CLI::App& app, AllReduceFlags& flags);
// InvalidArgument names flags that do not go together. `task` is this process's.
Status CheckAllReduce(const AllReduceFlags& flags, const TaskConfig& task);

// The replicas of a program, if the flags ask for them, and their group if it is elastic.
class AllReduce {
 public:
  // Adds nothing unless flags.all_reduce(). `target` is of the training's session. `flags` and
  // `task` have been checked.
  AllReduce(client::Program& program, const AllReduceFlags& flags, const TaskConfig& task,
            const std::string& target);

  bool used() const { return replicas_.has_value(); }
  // REQUIRES used(), as do the following.
  client::CollectiveReplicas& replicas() { return *replicas_; }
  bool is_chief() const { return replicas_->is_chief(); }
  // Returns whether the workers, and so the chief, may change.
  bool elastic() const { return group_.has_value(); }
  // Returns the number of the batch of this worker, among those of all workers and steps.
  int64_t BatchNumber(int64_t global_step) const;
  // Adds what makes the replicas agree, after all variables were made.
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
