// SPDX-License-Identifier: Apache-2.0
//
// ReplicaCalls: the calls of a replica's driving thread to the other replica and to the witness.
// Each blocks until the answer has come, or its timeout has passed. Unavailable if the called
// process cannot be reached.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "distributed/replica/replica_client.h"

namespace penstock {

class ReplicaCalls {
 public:
  struct Options {
    std::string task;          // "/job:ps/replica:0/task:1"
    uint64_t incarnation = 0;  // of this process
    std::string other;         // "host:port" of the other replica, for errors
    Scheduler* scheduler = nullptr;
    std::shared_ptr<ReplicaClient> peer, witness;
    int64_t timeout_ms = 0;  // of every call but Push
  };
  explicit ReplicaCalls(Options options);

  // Asks the other replica what it is. FailedPrecondition if it belongs to another task.
  StatusOr<wire::GreetResponse> Greet();
  // Asks the witness for an epoch and returns it. Aborted if another replica has it.
  StatusOr<uint64_t> Claim(uint64_t wanted);
  // Asks the primary to begin a feed with the number `feed` to this replica.
  Status Follow(uint64_t feed);
  // Sends changes to the follower, and returns the number of the push that it has answered.
  StatusOr<uint64_t> Push(const wire::PushRequest& push, int64_t timeout_ms);

 private:
  const Options options_;
};

}  // namespace penstock
