// SPDX-License-Identifier: Apache-2.0
//
// Tensors cut along dimension 0 and put together again: what containers of tensors do.
#pragma once

#include <vector>

#include "core/op/kernel.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Rows [begin, end) of `value` under another shape; sharing the buffer where that costs kernels
// nothing. For containers that keep all rows, so that none keeps the others alive for long.
StatusOr<Tensor> Rows(KernelContext& ctx, const Tensor& value, int64_t begin, int64_t end,
                      const Shape& shape);

// The elements of `parts` into `whole`, one part after the other. REQUIRES as many as `whole` has.
void JoinRows(KernelContext& ctx, const std::vector<Tensor>& parts, Tensor* whole);

// `rest` with a dimension in front. InvalidArgument where that makes too many elements.
StatusOr<Shape> WithFirst(int64_t first, const Shape& rest);

}  // namespace penstock
