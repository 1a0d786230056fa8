// SPDX-License-Identifier: Apache-2.0
//
// DropElements: moves a new session's input to the position that the training has reached. Internal
// to RunIterators and RunQueueRunners.
#pragma once

#include <cstdint>

#include "client/exactly_once.h"

namespace penstock::client {

// Takes and drops the elements of earlier steps with `taken`, a tensor or an op that takes one
// element. Their number is the count that `once` keeps; if `once` is null, it is `global_step`.
// FailedPrecondition if the input ends before that: every element of an earlier step must exist in
// the input.
Status DropElements(Session& session, Output taken, const ExactlyOnce* once, int64_t global_step);

}  // namespace penstock::client
