// SPDX-License-Identifier: Apache-2.0
//
// Shared by ops that map elements by a function.
#pragma once

#include "core/base/status.h"

namespace penstock {

// The end of a call for one element. A function that runs out of range ends the dataset, unless the
// dataset promised as many elements as its input has: then that is an error, in TensorFlow's words.
inline Status MapEnded(Status status, bool preserve_cardinality, bool* end) {
  *end = false;
  if (status.code() != StatusCode::kOutOfRange) return status;
  if (preserve_cardinality) {
    return InvalidArgument("Function invocation produced OutOfRangeError: ", status.message());
  }
  *end = true;
  return OkStatus();
}

}  // namespace penstock
