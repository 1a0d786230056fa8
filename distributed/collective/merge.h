// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of reductions, on flat arrays in host memory.
//
// Integers wrap around. half and bfloat16 are computed as floats and rounded after each operation.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/runtime/collective.h"

namespace penstock::collective {

// Returns OK if tensors of this type can be reduced, else InvalidArgument.
Status CheckMergeable(DType dtype);

// Computes to[i] = a[i] OP b[i] for `count` elements. `to` may be `a` or `b`. REQUIRES:
// CheckMergeable(dtype) is OK.
void Merge(MergeOp op, DType dtype, int64_t count, const void* a, const void* b, void* to);

// Divides each value by `divisor`; integers are rounded towards zero. REQUIRES:
// CheckMergeable(dtype) is OK, and divisor > 0.
void Divide(DType dtype, int64_t count, int64_t divisor, void* values);

}  // namespace penstock::collective
