// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/shadow_state.h"

#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/fault_point.h"

namespace penstock {
namespace {

const FaultPoint kTwice(FaultPoint::kBug, "replica/applied-twice",
                        "a follower applies a record twice");
const FaultPoint kGap(FaultPoint::kBug, "replica/missing-push-accepted",
                      "a follower does not notice that a push is missing");
const FaultPoint kKeepsHeld(FaultPoint::kBug, "replica/held-records-kept",
                            "a follower that takes over keeps steps that had not ended");

}  // namespace

void ShadowState::Clear() {
  replayer_.reset();
  store_.ClearAll();
  pieces_.Clear();
  held_.clear();
  last_position_ = committed_ = pushes_ = 0;
  whole_ = false;
}

Status ShadowState::Take(const wire::PushRequest& push) {
  if (push.number() != pushes_ + 1 && !kGap.Fires()) {
    return DataLoss("push ", push.number(), " follows push ", pushes_, ": one is missing");
  }
  if (push.committed() < committed_) {
    return DataLoss("the log was kept up to ", committed_, ", now up to ", push.committed());
  }
  if (!replayer_) replayer_.emplace(store_, files_);
  if (push.has_piece()) RETURN_IF_ERROR(pieces_.Add(push.piece(), bytes_max_));
  int64_t bytes_left = bytes_max_ - pieces_.bytes();
  for (const wire::StateRecord& record : push.record())
    RETURN_IF_ERROR(AddRecord(record, &bytes_left));
  committed_ = push.committed();
  RETURN_IF_ERROR(ApplyCommitted());
  whole_ = whole_ || push.whole();
  ++pushes_;
  return OkStatus();
}

Status ShadowState::AddRecord(const wire::StateRecord& record, int64_t* bytes_left) {
  ASSIGN_OR_RETURN(KeptChange change, RecordFromProto(record, bytes_left, &pieces_));
  // Records of the copy have position 0, and come before those of the log.
  if (change.position == 0 ? last_position_ != 0 : change.position <= last_position_) {
    return DataLoss("record ", change.position, " comes after record ", last_position_);
  }
  last_position_ = change.position;
  held_.push_back(std::move(change));
  return OkStatus();
}

Status ShadowState::ApplyCommitted() {
  std::vector<ResourceChange> parts;
  while (!held_.empty() && held_.front().position <= committed_) {
    const KeptChange change = std::move(held_.front());
    held_.pop_front();
    RETURN_IF_ERROR(replayer_->Apply(BorrowChange(change, &parts)));
    if (kTwice.Fires()) RETURN_IF_ERROR(replayer_->Apply(BorrowChange(change, &parts)));
  }
  return OkStatus();
}

void ShadowState::TakeOver() {
  CHECK(whole_, "a follower without all of the state takes over");
  if (replayer_ && kKeepsHeld.Fires()) {
    committed_ = last_position_;
    ApplyCommitted().IgnoreError();
  }
  pieces_.Clear();
  held_.clear();
  if (replayer_) replayer_->End({});
  replayer_.reset();
}

}  // namespace penstock
