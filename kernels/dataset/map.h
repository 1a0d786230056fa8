// SPDX-License-Identifier: Apache-2.0
//
// Code shared by ops that map elements by a function.
#pragma once

#include "core/base/status.h"

namespace penstock {

// Returns the status of an iterator whose map function ended with `status`. OutOfRange ends the
// dataset. If the dataset promised as many elements as its input (preserve_cardinality), OutOfRange
// is instead an error, with TensorFlow's text.
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
