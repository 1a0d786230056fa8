// SPDX-License-Identifier: Apache-2.0
//
// SimTraining: one client process that trains on the simulated cluster like a user's program, with
// TrainingLoop, ExactlyOnce and checkpoints. The client runs the steps of all workers; each worker
// computes the gradients of its share of the batch. The variables of one parameter server do not
// depend on those of another one, so an interrupted training must end with the same bits.
//
// Checks the guarantees of the loop; sim_world.h checks the others.
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
  // The maximum duration of a step, in simulated time.
  int64_t step_limit_ms = 12'000;
};

// Collects the observations of the successive clients of one simulated training.
struct SeenByClients {
  int64_t step = 0;        // the last acknowledged global step
  int64_t saved_step = 0;  // the step of the last checkpoint known to be complete
  // True if a fault has flipped a bit of a checkpoint, so that a restore may skip the checkpoint.
  bool damaged = false;
  int sessions = 0;
  // True while more faults are due, so that the training should not end yet.
  bool faults_due = false;
  std::function<void()> acknowledged;  // called after each acknowledged step
  std::set<std::string> errors;        // errors of steps, without numbers
  std::vector<std::string> violations;
};

class SimTraining final : public client::TrainingHook {
 public:
  // Borrows all arguments except the options. `find_master` returns the process that the client
  // addresses.
  SimTraining(const SimMachine& machine, const SimTrainingOptions& options, SeenByClients& seen,
              std::function<SimProcess*()> find_master);
  ~SimTraining() override;

  // Trains to the end. Sets `*weights` to the bits of all variables.
  Status Run(std::string* weights);
  // From now on the process's actions have no effect, and Run ends soon.
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
  int64_t unsaved_since_ = -1;  // the step of the first failed save since the last good one, or -1
};

}  // namespace penstock::simulation
