// SPDX-License-Identifier: Apache-2.0
//
// DropElements: moves a new session's input to where the training is. Internal to RunIterators and
// RunQueueRunners.
#pragma once

#include <cstdint>

#include "client/exactly_once.h"

namespace penstock::client {

// Takes and drops the elements of earlier steps with `taken`, a tensor or an op that takes one
// element. Their number is the count that `once` keeps; if `once` is null, it is `global_step`.
// FailedPrecondition if the input ends before: even a training that has used its whole input only
// drops elements that exist.
Status DropElements(Session& session, Output taken, const ExactlyOnce* once, int64_t global_step);

}  // namespace penstock::client
