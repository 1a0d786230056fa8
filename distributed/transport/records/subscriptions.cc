// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/records/subscriptions.h"

namespace penstock {

Status DescribeLost(const TaskId& producer, const Status& why, const CannotConnectText& text) {
  if (CannotConnect(why)) {
    return FailedPrecondition(text.what, " with ", producer.ToString(), ": ", why.message(), "; ",
                              text.advice);
  }
  const bool keeps = absl::IsAborted(why) || absl::IsDataLoss(why);
  return Status(keeps ? why.code() : StatusCode::kUnavailable,
                StrCat("lost the connection to ", producer.ToString(), ": ", why.message()));
}

void ReportLost(Subscriptions::Ended ended, TaskSteps& steps, const Status& status,
                const Status& why) {
  for (const int64_t step_id : ended.steps) steps.Fail(step_id, status);
  const Status reached = CannotConnect(why) ? FailedPrecondition(why.message()) : status;
  Subscriptions::Call(std::move(ended.opened), reached);
}

}  // namespace penstock
