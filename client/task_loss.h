// SPDX-License-Identifier: Apache-2.0
//
// IsTaskLoss: says for which errors a training makes a new session.
#pragma once

#include "core/base/status.h"

namespace penstock::client {

// Returns whether `status` means that a task is lost or has not started, so that another attempt
// may succeed.
inline bool IsTaskLoss(const Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

}  // namespace penstock::client
