// SPDX-License-Identifier: Apache-2.0
//
// ReplicaLog: receives every change of a parameter server's resources, and keeps the changes that
// its follower does not have yet. It also knows which steps run, and delays the end of a step
// until the follower has everything that the step changed.
//
// Records have positions 1, 2, ... in commit order. A cut is a position at which no running step
// has changed anything yet. The follower applies the log only up to the last cut, so that it has
// all changes of a step or none. If overlapping steps leave no cut for kCutNanosMax, the log is
// cut amid a step.
//
// Thread-safe, except that only one thread, the feeding thread, may call the methods listed for it
// below. No lock is held while a Done is called.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
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
  // If more bytes than this are queued for a new follower, which receives more slowly than training
  // produces them, steps wait.
  static constexpr int64_t kQueueBytesMax = 256 << 20;

  ReplicaLog(Env& env, Scheduler& scheduler);
  // Sets the store from which resources are removed that cannot be replicated; null, the default:
  // they stay. Borrowed. Call it before the first step.
  void RemoveRefusedFrom(ResourceStore* store) { store_ = store; }

  void Record(const StateChange& change) override ABSL_LOCKS_EXCLUDED(mu_);

  // Implement StepGate. A step that has made or changed a resource which cannot be replicated ends
  // with FailedPrecondition, which names the node and the resource, and the resource is removed, so
  // that the next step that would make it fails, too. After Refuse, a step that would succeed ends
  // with the error of Refuse.
  void StepBegins(int64_t step_id) override ABSL_LOCKS_EXCLUDED(mu_);
  void StepEnds(int64_t step_id, const Status& status, Done done) override ABSL_LOCKS_EXCLUDED(mu_);
  const char* awaited() const override {
    return "the follower of this parameter server to acknowledge its changes";
  }

  // The methods for the feeding thread follow.

  // Keeps all changes from now on, for a follower that begins with `*copy`: records that create
  // the current contents of `store`. Unimplemented names a resource that cannot be copied; no
  // changes are kept then.
  Status BeginFeed(const ResourceStore& store, std::vector<KeptChange>* copy)
      ABSL_LOCKS_EXCLUDED(mu_);
  struct Batch {
    std::vector<KeptChange> changes;
    uint64_t committed = 0;  // the last cut
    bool whole = false;      // after this batch the follower has the complete store
  };
  // Waits until there is something worth sending, but at most until `deadline_ns`. Takes changes of
  // about `bytes_max` bytes. After the first batch with `whole`, a step ends only when the follower
  // has acknowledged all changes that the step made or may have read. Returns whether there is
  // something to send.
  bool TakeBatch(int64_t deadline_ns, int64_t bytes_max, Batch* batch) ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that the follower has everything up to `committed`.
  void Acknowledge(uint64_t committed) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops the feed, because no follower has the complete store. Ends the waiting steps; later steps
  // end without waiting for an acknowledgement.
  void EndFeed() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether a follower may have been told that it has everything.
  bool follower_is_whole() const ABSL_LOCKS_EXCLUDED(mu_);

  // Fails steps that end from now on, or that wait, with `why`.
  void Refuse(const Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes TakeBatch return.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  struct Counts {
    uint64_t records = 0;         // records that the store has produced
    int64_t fed_bytes = 0;        // bytes of values handed to TakeBatch
    uint64_t forced_cuts = 0;     // cuts made amid a step
    int64_t waiting_steps = 0;    // number of steps that wait for the follower
    int64_t pushes = 0;           // batches taken
    bool feeding = false;         // there is a follower
    bool whole = false;           // the follower could take over
    uint64_t behind = 0;          // records that the follower has not acknowledged
    int64_t behind_bytes = 0;     // bytes of values not yet handed to TakeBatch
    int64_t acknowledged_ns = 0;  // time of the last acknowledgement; 0: none yet
  };
  Counts counts() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct KnownResource {
    std::string container, name, type;
    std::vector<Tensor> created_with;  // set only if the value has not changed since
    bool changed = false;
  };
  struct RunningStep {
    uint64_t first = 0, last = 0;    // positions of the step's changes; 0: none
    std::string refused;             // an error, if it used resources that cannot be replicated
    std::set<uint64_t> refused_ids;  // of these resources
  };
  struct RefusedResource {
    std::string container, name;
    uint64_t id;
  };
  struct WaitingStep {
    uint64_t position;  // the follower must have the log up to here
    int64_t since_ns;
    Done done;
  };
  using Dones = std::vector<Done>;

  static bool IsPrivate(const ResourceChange& change);
  void NoteChange(const ResourceChange& change, const UpdateOrigin& origin, RunningStep* step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<RefusedResource> NamesOf(const std::set<uint64_t>& ids) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FindCut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CutIfOverdue(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WorthSending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool KeepForFollower(KeptChange* change);
  Dones TakeEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void End(Dones dones, const Status& status);
  StatusOr<KeptChange> Copy(uint64_t id, const KnownResource& known, const Resource& resource);

  Env& env_;
  ResourceStore* store_ = nullptr;
  mutable Mutex mu_;  // locked after the mutexes of resources and stores
  Condition changed_;
  Status refused_ ABSL_GUARDED_BY(mu_);
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;  // position of the last record
  uint64_t committed_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, KnownResource> known_ ABSL_GUARDED_BY(mu_);  // by id
  std::map<int64_t, RunningStep> running_ ABSL_GUARDED_BY(mu_);
  std::deque<WaitingStep> waiting_ ABSL_GUARDED_BY(mu_);
  bool woken_ ABSL_GUARDED_BY(mu_) = false;

  // The state of the feed, from BeginFeed to EndFeed.
  bool feeding_ ABSL_GUARDED_BY(mu_) = false;
  bool whole_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t copied_at_ ABSL_GUARDED_BY(mu_) = 0;  // the follower is whole with the log up to here
  int64_t copied_ns_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<KeptChange> queue_ ABSL_GUARDED_BY(mu_);
  int64_t queue_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t sent_committed_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t acknowledged_ns_ ABSL_GUARDED_BY(mu_) = 0;
  Counts counts_ ABSL_GUARDED_BY(mu_);

  // Used by the feeding thread only: for each resource that the follower has, by id, the version
  // after which the log continues there.
  std::map<uint64_t, int64_t> fed_;
};

}  // namespace penstock
