// SPDX-License-Identifier: Apache-2.0
//
// Cuts tensors along dimension 0 and joins them again, for containers of tensors.
#pragma once

#include <vector>

#include "core/op/kernel.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Returns rows [begin, end) of `value`, reshaped to `shape`. Shares the buffer if the rows are
// aligned, else copies them. Only for containers that keep all rows of `value`: a row that is kept
// alone would keep the whole buffer alive.
StatusOr<Tensor> Rows(KernelContext& ctx, const Tensor& value, int64_t begin, int64_t end,
                      const Shape& shape);

// Copies the elements of `parts` into `whole`, one tensor after the other. REQUIRES: `whole` has as
// many elements as all `parts` together.
void JoinRows(KernelContext& ctx, const std::vector<Tensor>& parts, Tensor* whole);

// Returns `rest` with a dimension in front. InvalidArgument if the shape has too many elements.
StatusOr<Shape> WithFirst(int64_t first, const Shape& rest);

}  // namespace penstock
