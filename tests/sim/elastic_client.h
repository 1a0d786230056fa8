// SPDX-License-Identifier: Apache-2.0
//
// ElasticClient: one worker's client that trains on the simulated cluster in an ElasticGroup, with
// checkpoints that all workers share. Notes what the members of the groups see in ElasticSeen.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "client/allreduce/collective_replicas.h"
#include "client/allreduce/elastic_group.h"
#include "client/optimizers.h"
#include "client/training.h"
#include "tests/sim/sim_process.h"

namespace penstock::simulation {

struct ElasticOptions {
  int workers = 3;
  int64_t steps = 150;
  // true: the data of all workers end after `steps`; false: the training has this max_steps.
  bool data_end = false;
};

// The observations of all clients.
struct ElasticSeen {
  std::map<int32_t, std::string> groups;  // by key: their members
  // By the group's key, the step, and the number of batches that were used before it. A group of
  // the same key may take a step again, from older values.
  std::map<std::tuple<int32_t, int64_t, int64_t>, double> losses;
  int formed = 0;  // groups, counted by their chiefs
  std::vector<std::string> violations;
  std::function<void(int worker, const std::string& line)> say;
  // Called by the chief before it reads the variables for the last checkpoint.
  std::function<void(int worker)> last_save;
};

class ElasticClient final : public client::TrainingHook {
 public:
  // Borrows the machine, the worker's process, and `seen`.
  ElasticClient(const SimMachine& machine, const ElasticOptions& options, int worker,
                SimProcess& process, ElasticSeen& seen);
  ~ElasticClient() override;

  // Trains to the end.
  void Run();
  // Makes all later actions of the client have no effect; Run ends soon.
  void Kill();

  bool alive() const { return env_.alive(); }
  bool ended() const { return ended_; }
  int worker() const { return worker_; }
  // Valid when the client has ended:
  const Status& status() const { return status_; }
  int64_t step() const { return loop_->global_step(); }
  const std::string& weights() const { return weights_; }  // "" if the training ended with an error

  Status SessionReady(client::Session& session, int64_t global_step) override;
  Status AfterStep(const client::StepResult& result, bool* stop) override;
  void HoldUpdates() override;
  Status End(client::Session& session, int64_t global_step) override;

 private:
  struct Model;
  StatusOr<std::vector<Tensor>> NextBatch(int64_t step);
  void Violation(const std::string& text);

  const SimMachine machine_;
  const ElasticOptions options_;
  const int worker_;
  SimProcess& process_;
  ElasticSeen& seen_;
  ProcessEnv env_;
  const SimEnd end_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<client::TrainingLoop> loop_;
  bool ended_ = false;
  int64_t step_ = 0;
  Status status_;
  std::string weights_;
};

}  // namespace penstock::simulation
