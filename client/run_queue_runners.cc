// SPDX-License-Identifier: Apache-2.0
#include "client/run_queue_runners.h"

#include "client/drop_elements.h"

namespace penstock::client {

Status RunQueueRunners::SessionBegins(const HookSession& begun) {
  if (once_ != nullptr && !taken_.valid()) {
    return InvalidArgument(
        "RunQueueRunners with ExactlyOnce must be given the batch that is taken");
  }
  if (taken_.valid()) {
    RETURN_IF_ERROR(Annotate(runners_.CheckRepeatable(taken_), "the input cannot be resumed"));
  }
  coordinator_ = std::make_unique<Coordinator>(scheduler_);
  runners_.Start(begun.session, *coordinator_);
  if (!taken_.valid()) return OkStatus();
  const Status dropped =
      DropElements(begun.session, taken_, once_, begun.global_step, begun.run, begun.stopping);
  return dropped.ok() ? OkStatus() : StepFailed(dropped);
}

Status RunQueueRunners::StepFailed(const Status& why) {
  const Status cause = Stop();
  if (!cause.ok()) return cause;
  return once_ == nullptr ? why : once_->Explain(why);
}

Status RunQueueRunners::Stop() {
  if (coordinator_ == nullptr) return OkStatus();
  coordinator_->RequestStop();
  return coordinator_->Join();
}

}  // namespace penstock::client
