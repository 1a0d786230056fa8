// SPDX-License-Identifier: Apache-2.0
//
// Witness: decides which of two replicas goes on when they have lost each other: each epoch of a
// parameter server is given to one of them. Every task is one; replicas ask the first worker.
//
// It forgets with its process. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "proto/penstock/replica.pb.h"

namespace penstock {

class Witness {
 public:
  // Aborted if the epoch, or a later one, is another replica's. A replica that asks again for its
  // own gets it.
  StatusOr<wire::ClaimResponse> Claim(const wire::ClaimRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Callers choose names: no cluster has more parameter servers.
  static constexpr size_t kTasksMax = 100'000;
  static constexpr uint64_t kEpochMax = uint64_t{1} << 40;

  struct Held {
    uint64_t epoch = 0, incarnation = 0;
  };
  Mutex mu_;
  std::map<std::string, Held> tasks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
