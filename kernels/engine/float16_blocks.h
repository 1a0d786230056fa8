// SPDX-License-Identifier: Apache-2.0
//
// Converts runs of half and bfloat16 numbers to float and back, on the CPU. Kernels for these types
// convert a block at a time and compute it with the float loops.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace penstock {

// The number of elements that a kernel converts at once. The floats of a block fit in the
// first-level cache.
inline constexpr int64_t kFloat16Block = 1024;

inline bool IsFloat16(DType dtype) { return dtype == DType::kHalf || dtype == DType::kBfloat16; }

// Converts n elements; the second function rounds to nearest even. REQUIRES: IsFloat16(dtype).
// `from` and `to` must not overlap.
void Float16ToFloat(DType dtype, const void* from, float* to, int64_t n);
void FloatToFloat16(DType dtype, const float* from, void* to, int64_t n);

}  // namespace penstock
