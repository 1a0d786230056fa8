// SPDX-License-Identifier: Apache-2.0
//
// SyncReplicas: synchronous training with parameter servers that need not wait for the slowest
// workers. Every worker runs the same program in its own session:
//
//   SyncReplicas sync(program, {.replicas_to_aggregate = 3, .replicas = 4, .replica = 1});
//   const Output train = sync.Apply(optimizer, optimizer.ComputeGradients(program, loss));
//   TrainingLoop loop(program, {.train = train, ...}, {.is_chief = sync.is_chief(), ...});
//   loop.AddHook(&sync);
//
// A step adds the worker's gradients to sums on the variables' devices and waits for its token.
// When `replicas_to_aggregate` workers have added theirs, a thread of the chief (replica 0) applies
// the means, raises the global step and gives each worker a token. So an update equals that of one
// big batch, except for the order of summation. The replicas beyond `replicas_to_aggregate` are
// backups. A gradient that arrives after its update is dropped, and its worker continues with the
// newest step: one token is waiting for it, no matter how many updates it missed. Each worker
// counts once per update.
//
//   Each replica:  compute ─► sums of gradients ─► "arrived" ─► wait for token ─► next step
//   The chief's thread:        wait until enough have arrived ─► apply ─► global step ─► tokens
//
// A dead or stopped worker does not delay the others as long as enough of them are left. Neither
// does a worker whose data have ended, because it leaves the group. If too few are left, see
// `straggler_seconds`. If the chief ends normally, the others end with OutOfRange. If it is killed,
// they wait until it is restarted, as in any training. A restarted worker may count twice in the
// current update.
//
// An invalid argument sets the program's error. This error, and errors of the nodes, name the line
// of the call. A TrainingHook; used by one loop. Borrows the program.
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
  int replicas_to_aggregate = 1;  // number of gradients in an update; at most `replicas`
  int replicas = 1;
  int replica = 0;  // the index of this worker, in [0, replicas); 0 is the chief
  // If fewer gradients than `replicas_to_aggregate` have arrived, and no new one for this long, the
  // update uses those that have arrived. 0: the update waits for the rest.
  double straggler_seconds = 0;
  Env* env = &Env::Real();
  Scheduler* scheduler = &Scheduler::Real();  // must use the clock of `env`
};

class SyncReplicas : public TrainingHook {
 public:
  using Options = SyncReplicasOptions;
  SyncReplicas(Program& program, const Options& options,
               SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  ~SyncReplicas() override { SessionEnds(); }

  bool is_chief() const { return options_.replica == 0; }
  // Returns the train op. Call this once, instead of Optimizer::ApplyGradients.
  Output Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients,
               SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Return the number of updates that the chief has applied, and the total number of gradients in
  // them.
  int64_t updates() const { return updates_.load(); }
  int64_t gradients() const { return gradients_.load(); }

  Status SessionReady(Session& session, int64_t global_step) override;
  void HoldUpdates() override ABSL_NO_THREAD_SAFETY_ANALYSIS { updating_.Lock(); }
  void ReleaseUpdates() override ABSL_NO_THREAD_SAFETY_ANALYSIS { updating_.Unlock(); }
  // Returns OutOfRange if the chief has ended the training; else the error of the chief's thread,
  // if that caused the failure; else `why`.
  Status StepFailed(const Status& why) override;
  void SessionEnds() override;
  Status End(Session& session, int64_t global_step) override;

 private:
  struct Sum;
  Sum AddSum(const VariableGradient& g, Output local_step);
  Output AddToken(Output arrived);
  Output AddStagingOp(const char* op, const std::string& name, Output value = {});
  Output AddPoll(const Sum& arrivals, Output one);
  Gradient TakeMean(const Sum& sum, Output one);
  Output AddRestart(const std::vector<Sum>& sums, const Sum& arrivals);
  void AddChiefOps(Optimizer& optimizer, const std::vector<Sum>& sums, const Sum& arrivals);
  Output GiveTokens(const Outputs& after);
  void Serve(Session& session);
  Status ServeUpdates(Session& session);
  bool HasEnoughGradients(int64_t arrived, int64_t left, int64_t waited_ns) const;

  Program& program_;
  const Options options_;
  std::optional<Variable> local_step_;
  Output begin_, leave_;                                  // run by each replica
  Output restart_, resume_, poll_, update_, end_, fail_;  // run by the chief
  std::set<std::string> end_checks_;  // names of the nodes that fail when the chief has ended

  Mutex updating_;  // held while an update is applied
  std::unique_ptr<Cancellation> stop_;
  std::unique_ptr<Thread> server_;
  Status served_ ABSL_GUARDED_BY(updating_);  // the result of the thread, when it has ended
  bool began_ = false;                        // a session has been ready at least once
  std::atomic<int64_t> updates_{0}, gradients_{0};
};

}  // namespace penstock::client
