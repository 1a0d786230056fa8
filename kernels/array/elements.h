// SPDX-License-Identifier: Apache-2.0
//
// Contiguous runs of elements of any dtype: moved as bytes where the dtype is plain, as C++ objects
// (strings, resource handles) otherwise. What ops that only move data are made of, so that none of
// them is compiled once per type.
//
// Ranges must not overlap. Thread-safe.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/scheduler.h"
#include "core/tensor/tensor.h"

namespace penstock {

// The address of element `index` of an array that starts at `base`.
inline const void* ElementAt(const void* base, DType dtype, int64_t index) {
  return static_cast<const char*>(base) + index * static_cast<int64_t>(SizeOf(dtype));
}
inline void* ElementAt(void* base, DType dtype, int64_t index) {
  return static_cast<char*>(base) + index * static_cast<int64_t>(SizeOf(dtype));
}

void CopyElements(DType dtype, const void* from, void* to, int64_t count);
// Zeros, empty strings, empty handles.
void ZeroElements(DType dtype, void* to, int64_t count);
// `count` copies of the one element at `value`.
void FillElements(DType dtype, const void* value, void* to, int64_t count);

// The same for whole tensors, over several threads where it pays.
void Zero(Tensor& tensor, Scheduler& threads);
void FillWith(const void* value, Tensor& tensor, Scheduler& threads);

}  // namespace penstock
