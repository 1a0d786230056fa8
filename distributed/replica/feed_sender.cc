// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/feed_sender.h"

#include <utility>

#include "distributed/replica/value_pieces.h"

namespace penstock {
namespace {

// Protobuf's limit: a message must be smaller than 2 GiB.
constexpr size_t kPushBytesMax = 0x7fffffff;
// The time that a push of the copy gets to be answered, and in addition a millisecond for each
// kBytesPerMilli bytes of a push, a rate that is slower than any link.
constexpr int64_t kCopyMs = 5'000;
constexpr int64_t kBytesPerMilli = 20'000;

}  // namespace

Status FeedSender::SendCopy(const std::vector<KeptChange>& copy) {
  wire::PushRequest push;
  int64_t bytes = 0;
  for (const KeptChange& change : copy) {
    RETURN_IF_ERROR(AddRecord(change, &push));
    bytes += change.bytes();
    if (bytes < options_.push_bytes_max) continue;
    RETURN_IF_ERROR(Push(&push, bytes));
    bytes = 0;
  }
  return Push(&push, bytes);
}

Status FeedSender::SendBatch(ReplicaLog::Batch* batch, bool is_new) {
  wire::PushRequest push;
  push.set_committed(committed_);  // AddRecord copies this to the pushes of pieces
  push.set_whole(whole_);
  int64_t bytes = 0;
  for (const KeptChange& change : batch->changes) {
    RETURN_IF_ERROR(AddRecord(change, &push));
    bytes += change.bytes();
  }
  batch->changes.clear();
  const uint64_t committed = is_new ? batch->committed : committed_;
  const bool whole = batch->whole || whole_;
  push.set_committed(committed);
  push.set_whole(whole);
  RETURN_IF_ERROR(Push(&push, bytes));
  committed_ = committed;
  whole_ = whole;
  return OkStatus();
}

// Adds a record to `push`. If some of its values travel in pieces, first sends each piece in a
// push of its own, with the `committed` and `whole` of `push`.
Status FeedSender::AddRecord(const KeptChange& change, wire::PushRequest* push) {
  wire::PushRequest one;
  for (const KeptChange::Part& part : change.parts) {
    for (const Tensor& value : part.values) {
      if (!TravelsInPieces(value, options_.piece_bytes)) continue;
      const auto send = [&](wire::ValuePiece piece) {
        one.set_committed(push->committed());
        one.set_whole(push->whole());
        // On the first piece the follower allocates memory for the entire value, which takes
        // time.
        const bool first = piece.begin() == 0;
        *one.mutable_piece() = std::move(piece);
        return Push(&one, first ? static_cast<int64_t>(value.bytes()) : options_.piece_bytes);
      };
      RETURN_IF_ERROR(SendPieces(value, options_.piece_bytes, send));
    }
  }
  return RecordToProto(change, push->add_record(), options_.piece_bytes);
}

// Sends the next push of the feed, and clears it. `bytes`: the approximate size of its
// values.
Status FeedSender::Push(wire::PushRequest* push, int64_t bytes) {
  push->set_feed(options_.feed);
  push->set_epoch(options_.epoch);
  push->set_number(++number_);
  if (push->ByteSizeLong() > kPushBytesMax) {
    return ResourceExhausted("changes of ", push->ByteSizeLong(),
                             " bytes by one step cannot be replicated: at most ", kPushBytesMax,
                             " travel at once; partition the variables");
  }
  const int64_t base_ms = push->whole() ? options_.silent_ms : kCopyMs;
  const StatusOr<uint64_t> answered = calls_.Push(*push, base_ms + bytes / kBytesPerMilli);
  push->Clear();
  RETURN_IF_ERROR(answered.status());
  if (*answered != number_) return DataLoss("the follower answered another push");
  return OkStatus();
}

}  // namespace penstock
