// SPDX-License-Identifier: Apache-2.0
//
// FeedSender: sends one feed of a primary to its follower, as numbered pushes: first a copy of the
// state, then the batches of the log.
//
// Not thread-safe. After an error the feed has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "distributed/replica/record_proto.h"
#include "distributed/replica/replica_calls.h"
#include "distributed/replica/replica_log.h"

namespace penstock {

class FeedSender {
 public:
  struct Options {
    uint64_t feed = 0;   // the number that the follower has given the feed
    uint64_t epoch = 0;  // of the primary
    int64_t push_bytes_max = 8 << 20;
    int64_t piece_bytes = kPieceBytes;  // larger values travel in pieces
    int64_t silent_ms = 1'500;          // a follower that is whole has to answer within this time
  };
  // Borrows `calls`.
  FeedSender(ReplicaCalls& calls, const Options& options) : calls_(calls), options_(options) {}

  // Send the copy, or a batch, in one or more pushes, and wait for the answers. ResourceExhausted
  // if the changes are too large for a message, DataLoss if an answer is for another push, else the
  // error of the call. SendBatch frees the changes of `*batch`, so that the next updates need not
  // copy the values. `is_new`: the result of ReplicaLog::TakeBatch.
  Status SendCopy(const std::vector<KeptChange>& copy);
  Status SendBatch(ReplicaLog::Batch* batch, bool is_new);

  // Returns the last cut that the follower has.
  uint64_t committed() const { return committed_; }
  // Returns whether the follower has been told that it has the complete state.
  bool whole() const { return whole_; }

 private:
  Status AddRecord(const KeptChange& change, wire::PushRequest* push);
  Status Push(wire::PushRequest* push, int64_t bytes);

  ReplicaCalls& calls_;
  const Options options_;
  uint64_t number_ = 0;  // of the last push
  uint64_t committed_ = 0;
  bool whole_ = false;
};

}  // namespace penstock
