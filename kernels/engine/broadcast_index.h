// SPDX-License-Identifier: Apache-2.0
//
// BroadcastIndex: maps one element of a result to an operand's element, for results whose elements
// cost more than this mapping (strings, matrices). For other results use BroadcastPlan
// (broadcast.h).
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

// Returns the index of the element, in an operand of shape `own`, that belongs to element i of a
// result of shape `dims`. `own` broadcasts to `dims` (NumPy's rules).
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
