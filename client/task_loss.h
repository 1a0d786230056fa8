// SPDX-License-Identifier: Apache-2.0
//
// IsTaskLoss: the errors after which a training makes a new session.
#pragma once

#include "core/base/status.h"

namespace penstock::client {

// Returns whether a task is lost or has not started, so that another attempt may succeed.
inline bool IsTaskLoss(const Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

}  // namespace penstock::client
