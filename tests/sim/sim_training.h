// SPDX-License-Identifier: Apache-2.0
//
// SimTraining: one process of a client that trains on the simulated cluster, as a program of a user
// does: TrainingLoop, ExactlyOnce, checkpoints. It drives all workers, each of which computes the
// gradients of its part of the batch. What one parameter server holds does not depend on what
// another one holds, so that a training that was interrupted has to end with the same bits.
//
// Checks what the loop promises; the rest is checked by sim_world.h.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/exactly_once.h"
#include "client/training.h"
#include "tests/sim/sim_process.h"

namespace penstock::simulation {

struct SimTrainingOptions {
  int64_t steps = 40, save_every_steps = 5;
  int ps = 2, workers = 3;
  bool replicas = false;
  // No step may take longer, in simulated time.
  int64_t step_limit_ms = 12'000;
};

// Collects what the clients of one simulated training have seen, one after the other.
struct SeenByClients {
  int64_t step = 0;        // the last one that was acknowledged
  int64_t saved_step = 0;  // of a checkpoint that was certainly written
  // A checkpoint may be passed over, because a bit of it was flipped.
  bool damaged = false;
  int sessions = 0;
  std::set<std::string> errors;  // of steps, without their numbers
  std::vector<std::string> violations;
};

class SimTraining final : public client::TrainingHook {
 public:
  // All but the options are borrowed. `find_master` finds the process that the client addresses.
  SimTraining(const SimMachine& machine, const SimTrainingOptions& options, SeenByClients& seen,
              std::function<SimProcess*()> find_master);
  ~SimTraining() override;

  // Trains to the end. `*weights` are the bits of all variables.
  Status Run(std::string* weights);
  // From now on nothing that it does has any effect; Run ends soon.
  void Kill();
  bool alive() const { return env_.alive(); }
  ProcessEnv& env() { return env_; }

  Status SessionReady(client::Session& session, int64_t global_step) override;
  Status BeforeStep(int64_t global_step) override;
  Status AfterStep(const client::StepResult& result, bool* stop) override;
  Status StepFailed(const Status& why) override;
  Status End(client::Session& session, int64_t global_step) override;

 private:
  struct Model;
  void Violation(const std::string& text);
  void CheckTime();
  void CheckError(const Status& why);
  void Say(const std::string& line);
  StatusOr<std::vector<Tensor>> NextBatch();
  StatusOr<std::string> Weights(client::Session& session) const;

  const SimMachine machine_;
  const SimTrainingOptions options_;
  SeenByClients& seen_;
  const std::function<SimProcess*()> find_master_;
  ProcessEnv env_;
  const SimEnd end_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<client::TrainingLoop> loop_;
  int64_t next_batch_ = 0, step_began_ns_ = 0, steps_since_session_ = 0;
  std::string weights_;
  int64_t unsaved_since_ = -1;  // a save has failed at this step
};

}  // namespace penstock::simulation
