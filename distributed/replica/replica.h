// SPDX-License-Identifier: Apache-2.0
//
// Replica: one of the two processes that are one parameter server. The primary serves, and sends
// every change to its follower; the follower takes over when the primary is gone. README.md states
// the guarantees.
//
//   starting ──► follower ──► primary          the primary is gone, and the witness agrees
//      │  ▲         │                          the witness has chosen the primary
//      │  └─────────┘
//      └──────────────────► primary            neither has any state, and this is replica 0
//
// Thread-safe. It has one driving thread; calls from the other replica arrive on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/op/resource.h"
#include "distributed/replica/replica_calls.h"
#include "distributed/replica/replica_client.h"
#include "distributed/replica/replica_log.h"
#include "distributed/replica/shadow_state.h"

namespace penstock {

class Replica {
 public:
  struct Options {
    std::string task;          // "/job:ps/replica:0/task:1"
    uint64_t incarnation = 0;  // of this process
    int index = 0;             // 0 or 1
    std::string other;         // "host:port" of the other replica, for texts of `say`
    // Borrowed. `log` is the log of the store.
    ResourceStore* store = nullptr;
    ReplicaLog* log = nullptr;
    Env* env = nullptr;
    Scheduler* scheduler = nullptr;
    std::shared_ptr<ReplicaClient> peer, witness;
    // Called when this replica becomes the primary, so that masters may use it.
    std::function<void()> serve;
    // Called when the other replica has taken over from this one: this process must end.
    std::function<void(const Status& why)> fenced;
    // Prints a line for people, without a newline at its end.
    std::function<void(const std::string&)> say;
    int64_t greet_ms = 100;     // interval between the questions of a follower
    int64_t silent_ms = 1'500;  // a process that has not answered for this long counts as gone
    int64_t push_bytes_max = 8 << 20;
    int64_t piece_bytes = kPieceBytes;            // larger values travel in pieces
    int64_t shadow_bytes_max = int64_t{1} << 34;  // maximum number of bytes of values in one push
  };
  explicit Replica(Options options);
  ~Replica();

  void Start();
  // Stops the replica. Steps that wait for the follower end with Unavailable.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // Handle calls from the other replica. Follow: Unavailable if this replica is not the primary, or
  // has not yet ended its last feed; FailedPrecondition if its state cannot be copied now. In both
  // cases the caller may ask again. Push: Aborted if this replica no longer follows the caller,
  // else the error of the first push that could not be applied.
  wire::GreetResponse Greet(const wire::GreetRequest& request) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<wire::FollowResponse> Follow(const wire::FollowRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<wire::PushResponse> Push(const wire::PushRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  wire::ReplicaRole role() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t epoch() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether this primary has a follower that could take over.
  bool has_follower() const { return options_.log->follower_is_whole(); }

  // The state for status pages.
  struct State {
    wire::ReplicaRole role = wire::REPLICA_STARTING;
    int index = 0;
    uint64_t epoch = 0;
    std::string other;        // "host:port"
    bool whole = false;       // this is a follower that could take over: it has all of the state
    std::string cannot_copy;  // why a primary has no follower; "" if it is not known
    ReplicaLog::Counts log;   // the log of the primary
  };
  State state() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  void Begin();
  void BeginToFollow(const wire::GreetResponse& primary);
  void WatchPrimary();
  void TakeOver();
  void RunAsPrimary();
  void Feed(uint64_t feed);
  void FollowerIsWhole();
  void RememberCannotCopy(const Status& why, int64_t again_ms) ABSL_LOCKS_EXCLUDED(mu_);
  void LoseFollower(const Status& why);
  void ServeWhenReady() ABSL_LOCKS_EXCLUDED(mu_);
  void ForgetState() ABSL_LOCKS_EXCLUDED(mu_);
  void BecomePrimary(uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void Pause(int64_t millis) ABSL_LOCKS_EXCLUDED(mu_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mu_);
  void Say(const std::string& line);

  const Options options_;
  ReplicaCalls calls_;  // used by the driving thread
  mutable Mutex mu_;    // locked before the mutexes of the store and the log
  Condition changed_;
  wire::ReplicaRole role_ ABSL_GUARDED_BY(mu_) = wire::REPLICA_STARTING;
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  // The random number that names the current feed. A follower has asked for this feed; a primary
  // was asked for it. 0: no feed.
  uint64_t feed_ ABSL_GUARDED_BY(mu_) = 0;
  bool feed_ends_ ABSL_GUARDED_BY(mu_) = false;  // the follower has asked for a new feed
  Status cannot_copy_ ABSL_GUARDED_BY(mu_);      // why there is no follower
  int64_t cannot_copy_until_ns_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t primary_incarnation_ ABSL_GUARDED_BY(mu_) = 0;
  ShadowState shadow_ ABSL_GUARDED_BY(mu_);
  Status shadow_error_ ABSL_GUARDED_BY(mu_);
  bool claiming_ ABSL_GUARDED_BY(mu_) = false;  // while true, Push refuses (see TakeOver)
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  // Used by the driving thread only.
  std::string said_;
  int64_t said_ns_ = 0;
  bool serving_ = false;
  int64_t leads_since_ns_ = 0;
  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock
