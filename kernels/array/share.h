// SPDX-License-Identifier: Apache-2.0
//
// When an op whose result is a run of elements of its input may share the input's buffer.
#pragma once

#include <cstdint>

#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"

namespace penstock {

// True where a tensor that starts at `element` of `whole` is aligned as a fresh one would be, which
// vectorised kernels are fastest with.
inline bool AlignedAt(const Tensor& whole, int64_t element) {
  return element * SizeOf(whole.dtype()) % Allocator::kAlignment == 0;
}

// A part that is shared keeps the whole alive, and makes an update of it copy if it is a variable's
// value. So only parts of some weight are.
inline bool WorthSharing(const Tensor& whole, int64_t element, int64_t count) {
  return AlignedAt(whole, element) && count >= whole.num_elements() / 4;
}

}  // namespace penstock
