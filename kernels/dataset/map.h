// SPDX-License-Identifier: Apache-2.0
//
// Code shared by ops that map elements by a function.
#pragma once

#include "core/base/status.h"

namespace penstock {

// Converts the status of a map function to the status of GetNext: OutOfRange sets `*end`. But if
// the dataset has promised as many elements as its input (preserve_cardinality), OutOfRange becomes
// an error with TensorFlow's text.
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
