// SPDX-License-Identifier: Apache-2.0
//
// Decides whether an op whose result is a run of elements of its input may share the input's
// buffer.
#pragma once

#include <cstdint>

#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Returns true if a tensor that starts at element `element` of `whole` is aligned like a newly
// allocated one. Vectorised kernels are fastest on such tensors.
inline bool IsAlignedAt(const Tensor& whole, int64_t element) {
  return element * SizeOf(whole.dtype()) % Allocator::kAlignment == 0;
}

// Returns true if the elements should be shared. A shared slice keeps the whole buffer alive and,
// if the buffer is a variable's value, forces the next update of the variable to copy it. So only
// aligned slices of at least a quarter of the tensor are shared.
inline bool ShouldShare(const Tensor& whole, int64_t element, int64_t count) {
  return IsAlignedAt(whole, element) && count >= whole.num_elements() / 4;
}

}  // namespace penstock
