// SPDX-License-Identifier: Apache-2.0
//
// ReplicaLog: sees every change of a parameter server's resources, and keeps those that its
// follower has not got yet. It also knows which steps run, and holds back the end of a step until
// the follower has all that the step changed.
//
// Records have positions 1, 2, ... in commit order. A cut is a position at which no running step
// has changed anything yet: the follower keeps the log up to the last cut, so that it has all of a
// step, or nothing. Where steps overlap for so long that no cut comes within kCutNanosMax, the log
// is cut where it is.
//
// Thread-safe, but for what one feeding thread calls. No lock is held while a Done is called.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/base/done.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/op/resource.h"
#include "core/op/state_log.h"
#include "distributed/replica/record_proto.h"
#include "distributed/worker/step_gate.h"

namespace penstock {

class ReplicaLog final : public StateLog, public StepGate {
 public:
  static constexpr int64_t kCutNanosMax = 100'000'000;
  // A new follower that is slower than training makes steps wait from here on.
  static constexpr int64_t kQueueBytesMax = 256 << 20;

  ReplicaLog(Env& env, Scheduler& scheduler);

  void Record(const StateChange& change) override ABSL_LOCKS_EXCLUDED(mu_);

  // StepGate. FailedPrecondition names a resource that the step has changed and that cannot be
  // replicated; Unavailable after Refuse.
  void StepBegins(int64_t step_id) override ABSL_LOCKS_EXCLUDED(mu_);
  void StepEnds(int64_t step_id, const Status& status, Done done) override ABSL_LOCKS_EXCLUDED(mu_);
  const char* awaited() const override {
    return "the follower of this parameter server to acknowledge its changes";
  }

  // The calls of the feeding thread follow.

  // Keeps all changes from now on, for a follower that begins with `*copy`: records that make what
  // is in `store` now. Unimplemented names a resource that cannot be copied; nothing is kept then.
  Status BeginFeed(const ResourceStore& store, std::vector<KeptChange>* copy)
      ABSL_LOCKS_EXCLUDED(mu_);
  struct Batch {
    std::vector<KeptChange> changes;
    uint64_t committed = 0;  // the last cut
    bool whole = false;      // with it the follower has all that is in the store
  };
  // Waits until there is something worth sending, but at most until `deadline_ns`. Takes changes of
  // about `bytes_max` bytes. From the first batch that is whole on, steps end when it has been
  // acknowledged. Returns whether there is something to be sent.
  bool TakeBatch(int64_t deadline_ns, int64_t bytes_max, Batch* batch) ABSL_LOCKS_EXCLUDED(mu_);
  // The follower has everything up to `committed`.
  void Acknowledge(uint64_t committed) ABSL_LOCKS_EXCLUDED(mu_);
  // There is no follower that could take over: steps end without waiting.
  void EndFeed() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a follower may have been told that it has everything.
  bool follower_is_whole() const ABSL_LOCKS_EXCLUDED(mu_);

  // Steps that end from now on, or wait, fail with `why`.
  void Refuse(const Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Has TakeBatch return.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  struct Counts {
    uint64_t records = 0;         // that the store has seen
    int64_t fed_bytes = 0;        // of values handed to TakeBatch
    uint64_t forced_cuts = 0;     // amid a step
    int64_t waiting_steps = 0;    // for the follower
    int64_t pushes = 0;           // batches taken
    bool feeding = false;         // there is a follower, and
    bool whole = false;           // it could take over
    uint64_t behind = 0;          // records that it has not acknowledged
    int64_t behind_bytes = 0;     // of values that were not handed to TakeBatch yet
    int64_t acknowledged_ns = 0;  // when it last acknowledged something; 0: it has not
  };
  Counts counts() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Known {
    std::string container, name, type;
    std::vector<Tensor> created_with;  // while it has not changed since
    bool changed = false;
  };
  struct RunningStep {
    uint64_t first = 0, last = 0;  // positions of what it has changed; 0: nothing
    std::string refused;           // a resource that cannot be replicated
  };
  struct WaitingStep {
    uint64_t position;  // up to here the follower must have the log
    int64_t since_ns;
    Done done;
  };
  using Dones = std::vector<Done>;

  static bool IsPrivate(const ResourceChange& change);
  void Note(const ResourceChange& change, RunningStep* step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FindCut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CutIfOverdue(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WorthSending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool KeepForFollower(KeptChange* change);
  Dones TakeEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void End(Dones dones, const Status& status);
  StatusOr<KeptChange> Copy(uint64_t id, const Known& known, const Resource& resource);

  Env& env_;
  mutable Mutex mu_;  // locked after those of resources and stores
  Condition changed_;
  Status refused_ ABSL_GUARDED_BY(mu_);
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;  // position
  uint64_t committed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Known> known_ ABSL_GUARDED_BY(mu_);  // by id
  std::map<int64_t, RunningStep> running_ ABSL_GUARDED_BY(mu_);
  std::deque<WaitingStep> waiting_ ABSL_GUARDED_BY(mu_);
  bool woken_ ABSL_GUARDED_BY(mu_) = false;

  // State of the feed that is under way.
  bool feeding_ ABSL_GUARDED_BY(mu_) = false;
  bool whole_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t copied_at_ ABSL_GUARDED_BY(mu_) = 0;  // position at which the copy was complete
  int64_t copied_ns_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<KeptChange> queue_ ABSL_GUARDED_BY(mu_);
  int64_t queue_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t sent_committed_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t acknowledged_ns_ ABSL_GUARDED_BY(mu_) = 0;
  Counts counts_ ABSL_GUARDED_BY(mu_);

  // The feeding thread's own: what the follower has, by id, and the version from which the log
  // goes on there.
  std::map<uint64_t, int64_t> fed_;
};

}  // namespace penstock
