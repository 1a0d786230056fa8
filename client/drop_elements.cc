// SPDX-License-Identifier: Apache-2.0
#include "client/drop_elements.h"

namespace penstock::client {

Status DropElements(Session& session, Output taken, const ExactlyOnce* once, int64_t global_step,
                    const RunOptions& run, const std::function<bool()>& stopping) {
  int64_t steps = global_step;
  if (once != nullptr) {
    ASSIGN_OR_RETURN(steps, once->Begin(session));
  }
  if (steps == 0) return OkStatus();
  ASSIGN_OR_RETURN(const Callable take, session.MakeCallable({}, {}, {taken}));
  for (int64_t i = 0; i < steps; ++i) {
    if (stopping != nullptr && stopping()) {
      return Cancelled("the training was told to end while the input went to its position: ", i,
                       " of the ", steps, " elements of earlier steps were dropped");
    }
    const Status status = take({}, run).status();
    // Changes the code from OutOfRange, which the caller would take for the end of the training.
    if (absl::IsOutOfRange(status)) {
      return FailedPrecondition("the input cannot be resumed: it ends after ", i, " of the ", steps,
                                " elements that earlier steps took: ", status.message());
    }
    RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

}  // namespace penstock::client
