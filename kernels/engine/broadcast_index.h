// SPDX-License-Identifier: Apache-2.0
//
// BroadcastIndex: one element at a time, for results whose elements cost more than finding their
// operands (strings, matrices). BroadcastPlan (broadcast.h) is for the others.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

// Which element of an operand of shape `own` belongs to element i of a result of shape `dims`, to
// which it broadcasts (NumPy's rules).
inline int64_t BroadcastIndex(int64_t i, absl::Span<const int64_t> dims,
                              absl::Span<const int64_t> own) {
  int64_t at = 0, stride = 1;
  for (size_t d = 0; d < own.size(); ++d) {
    const int64_t size = dims[dims.size() - 1 - d], mine = own[own.size() - 1 - d];
    if (mine != 1) at += i % size * stride;
    i /= size;
    stride *= mine;
  }
  return at;
}

}  // namespace penstock
