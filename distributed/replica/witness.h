// SPDX-License-Identifier: Apache-2.0
//
// Witness: decides which of two replicas continues when they have lost each other, by granting
// each epoch of a parameter server to only one of them. Every task is a witness; replicas ask
// the first worker.
//
// Grants are kept in memory only: a restart of the witness's process loses them. Thread-safe.
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
  // Grants an epoch. Aborted if another replica has this epoch or a later one. A replica that
  // asks again for its own epoch gets it. If the request has epoch 0, grants the epoch that the
  // replica already has, or else the next one.
  StatusOr<wire::ClaimResponse> Claim(const wire::ClaimRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Limits the memory, because callers may send any task names. No cluster has this many parameter
  // servers.
  static constexpr size_t kTasksMax = 100'000;
  static constexpr uint64_t kEpochMax = uint64_t{1} << 40;

  struct HeldEpoch {
    uint64_t epoch = 0, incarnation = 0;
  };
  Mutex mu_;
  std::map<std::string, HeldEpoch> tasks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
