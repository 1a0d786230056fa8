// SPDX-License-Identifier: Apache-2.0
//
// Copies, zeroes and fills contiguous runs of elements of any dtype: as bytes if the dtype is
// plain, else as C++ objects (strings, resource handles). Ops that only move data use these
// functions, so that none of them is compiled once per type.
//
// Ranges must not overlap. Thread-safe.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/scheduler.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Returns the address of element `index` of an array that starts at `base`.
inline const void* ElementAt(const void* base, DType dtype, int64_t index) {
  return static_cast<const char*>(base) + index * static_cast<int64_t>(SizeOf(dtype));
}
inline void* ElementAt(void* base, DType dtype, int64_t index) {
  return static_cast<char*>(base) + index * static_cast<int64_t>(SizeOf(dtype));
}

void CopyElements(DType dtype, const void* from, void* to, int64_t count);
// Writes zeros, empty strings or empty handles.
void ZeroElements(DType dtype, void* to, int64_t count);
// Writes `count` copies of the element at `value`.
void FillElements(DType dtype, const void* value, void* to, int64_t count);

// Zero or fill a whole tensor, on several threads if it is large.
void Zero(Tensor& tensor, Scheduler& threads);
void FillWith(const void* value, Tensor& tensor, Scheduler& threads);

}  // namespace penstock
