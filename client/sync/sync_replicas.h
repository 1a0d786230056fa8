// SPDX-License-Identifier: Apache-2.0
//
// SyncReplicas: workers with parameter servers that take each step together, without waiting for
// the slowest of them. Every worker runs the same program in a session of its own:
//
//   SyncReplicas sync(program, {.replicas_to_aggregate = 3, .replicas = 4, .replica = 1});
//   const Output train = sync.Apply(optimizer, optimizer.ComputeGradients(program, loss));
//   TrainingLoop loop(program, {.train = train, ...}, {.is_chief = sync.is_chief(), ...});
//   loop.AddHook(&sync);
//
// A step adds the worker's gradients to sums beside the variables and waits for its token. When
// `replicas_to_aggregate` workers have come, a thread of the chief (replica 0) applies the means,
// raises the global step and gives each worker a token. So an update is that of one big batch, but
// for the order of summation; the other replicas are backups. A gradient that comes after its
// update is dropped, and its worker goes on with the newest step: it has one token waiting, however
// many updates it has missed. Each worker counts once per update.
//
//   Each replica:  compute ─► sums of gradients ─► "arrived" ─► wait for token ─► next step
//   The chief's thread:        wait until enough have arrived ─► apply ─► global step ─► tokens
//
// A worker that is dead or stopped holds nobody up as long as enough others are left, nor does one
// whose data have ended: it says so. Beyond that, see `straggler_seconds`. If the chief ends, in
// good order, so do the others (OutOfRange); if it is killed they wait until it is started again,
// as in any training. A worker that is started again may count twice in the update that is under
// way.
//
// Errors made while building become the program's. A TrainingHook; used by one loop. Borrows the
// program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/optimizer.h"
#include "client/training_hook.h"
#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace penstock::client {

struct SyncReplicasOptions {
  int replicas_to_aggregate = 1;  // gradients in an update; at most `replicas`
  int replicas = 1;
  int replica = 0;  // this one, in [0, replicas); 0 is the chief
  // If fewer gradients than that have come, and none for so long, they are applied. 0: the update
  // waits for the rest.
  double straggler_seconds = 0;
  Env* env = &Env::Real();
  Scheduler* scheduler = &Scheduler::Real();  // of that Env's time
};

class SyncReplicas : public TrainingHook {
 public:
  using Options = SyncReplicasOptions;
  SyncReplicas(Program& program, const Options& options);
  ~SyncReplicas() override { SessionEnds(); }

  bool is_chief() const { return options_.replica == 0; }
  // The train op: what Optimizer::ApplyGradients is to others. To be called once.
  Output Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients);

  // Updates that the chief has applied, and how many gradients these had together.
  int64_t updates() const { return updates_.load(); }
  int64_t gradients() const { return gradients_.load(); }

  Status SessionReady(Session& session, int64_t global_step) override;
  void HoldUpdates() override ABSL_NO_THREAD_SAFETY_ANALYSIS { updating_.Lock(); }
  void ReleaseUpdates() override ABSL_NO_THREAD_SAFETY_ANALYSIS { updating_.Unlock(); }
  // OutOfRange if the chief has ended the training; else the error of the chief's thread, if that
  // is why the step has failed.
  Status StepFailed(const Status& why) override;
  void SessionEnds() override;
  Status End(Session& session, int64_t global_step) override;

 private:
  struct Sum;
  Sum AddSum(const VariableGradient& g, Output local_step);
  Output AddToken(Output arrived);
  Output Area(const char* op, const std::string& name, Output value = {});
  void AddChiefOps(Optimizer& optimizer, const std::vector<Sum>& sums, const Sum& arrivals);
  Output GiveTokens(const Outputs& after);
  void Serve(Session& session);
  Status ServeUpdates(Session& session);
  bool Enough(int64_t arrived, int64_t left, int64_t waited_ns) const;

  Program& program_;
  const Options options_;
  std::optional<Variable> local_step_;
  Output begin_, leave_;                                  // each replica's
  Output restart_, resume_, poll_, update_, end_, fail_;  // the chief's
  std::set<std::string> end_checks_;  // nodes that fail when the chief has ended

  Mutex updating_;  // held while an update is applied
  std::unique_ptr<Cancellation> stop_;
  std::unique_ptr<Thread> server_;
  Status served_ ABSL_GUARDED_BY(updating_);  // why the thread has ended
  bool began_ = false;                        // a session was ready once
  std::atomic<int64_t> updates_{0}, gradients_{0};
};

}  // namespace penstock::client
