// SPDX-License-Identifier: Apache-2.0
//
// ShadowState: the follower's copy of a parameter server's state. It applies the primary's pushes
// to a ResourceStore that no step uses yet.
//
// Records after the last cut are not applied yet: they belong to steps that still run, and are
// dropped when the follower takes over. Pushes come from another process, so a malformed one is an
// error, not a crash. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/op/resource.h"
#include "core/op/state_replay.h"
#include "distributed/replica/record_proto.h"

namespace penstock {

class ShadowState {
 public:
  // `bytes_max` limits the total size of a push's values, including those that arrived in pieces
  // before the push. Borrows the store, and `files`, which must outlive it (StateReplayer).
  ShadowState(ResourceStore& store, Env& files, int64_t bytes_max)
      : store_(store), files_(files), bytes_max_(bytes_max) {}

  // Starts again with an empty store.
  void Clear();
  // Applies a push; the pushes of one feed have to come in their order. DataLoss if one is missing
  // or a record does not follow the one before; InvalidArgument if a record is malformed;
  // ResourceExhausted if the values are too large. After an error only Clear may be called.
  Status Take(const wire::PushRequest& push);
  // Returns whether it has the complete state of the primary.
  bool whole() const { return whole_; }
  // Return the last cut, and the number of pushes that were applied.
  uint64_t committed() const { return committed_; }
  uint64_t pushes() const { return pushes_; }

  // Drops the changes of unfinished steps. From then on the store is that of a primary.
  // REQUIRES whole().
  void TakeOver();

 private:
  Status AddRecord(const wire::StateRecord& record, int64_t* bytes_left);
  Status ApplyCommitted();

  ResourceStore& store_;
  Env& files_;
  const int64_t bytes_max_;
  std::optional<StateReplayer> replayer_;
  PieceReader pieces_;
  std::deque<KeptChange> held_;
  uint64_t last_position_ = 0, committed_ = 0, pushes_ = 0;
  bool whole_ = false;
};

}  // namespace penstock
