// SPDX-License-Identifier: Apache-2.0
//
// DropElements: moves the input of a new session to the position that the training has reached.
// Internal to RunIterators and RunQueueRunners.
#pragma once

#include <cstdint>

#include "client/exactly_once.h"

namespace penstock::client {

// Drops the elements that earlier steps have used, by running `taken`, a tensor or an op that takes
// one element. Their number is the count that `once` keeps; if `once` is null, it is `global_step`.
// FailedPrecondition if the input ends before all of them are dropped.
Status DropElements(Session& session, Output taken, const ExactlyOnce* once, int64_t global_step);

}  // namespace penstock::client
