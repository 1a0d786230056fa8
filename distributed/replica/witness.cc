// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/witness.h"

#include "core/base/fault_point.h"

namespace penstock {
namespace {

const FaultPoint kDenied(FaultPoint::kMishap, "witness/busy", "the witness gives no epoch yet");
const FaultPoint kBoth(FaultPoint::kBug, "witness/epoch-for-both",
                       "the witness gives one epoch to both replicas");

}  // namespace

StatusOr<wire::ClaimResponse> Witness::Claim(const wire::ClaimRequest& request) {
  if (request.task().empty() || request.incarnation() == 0) {
    return InvalidArgument("a claim names its task and its replica's incarnation");
  }
  if (request.epoch() > kEpochMax) {
    return InvalidArgument("epoch ", request.epoch(), " of ", request.task(), " is out of range");
  }
  if (kDenied.Fires()) return Unavailable("this witness is busy");
  MutexLock lock(mu_);
  if (tasks_.size() >= kTasksMax && tasks_.count(request.task()) == 0) {
    return ResourceExhausted("this witness knows ", kTasksMax, " tasks already");
  }
  HeldEpoch& held = tasks_[request.task()];
  const bool again = held.incarnation == request.incarnation() &&
                     (request.epoch() == held.epoch || request.epoch() == 0);
  if (!again && request.epoch() != 0 && request.epoch() <= held.epoch && !kBoth.Fires()) {
    return Aborted("epoch ", held.epoch, " of ", request.task(), " is another replica's");
  }
  if (!again) {
    held.epoch = request.epoch() == 0 ? held.epoch + 1 : request.epoch();
    held.incarnation = request.incarnation();
  }
  wire::ClaimResponse response;
  response.set_epoch(held.epoch);
  return response;
}

}  // namespace penstock
