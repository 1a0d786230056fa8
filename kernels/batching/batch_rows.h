// SPDX-License-Identifier: Apache-2.0
//
// Joins tensors along dimension 0, and cuts them again.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Returns the rows of all `parts`, followed by copies of `padding`, a tensor of one row, until
// there are `rows` of them; without `padding`, by zeros. InvalidArgument unless all rows have the
// same type and shape. REQUIRES: there is at least one part, and the parts have at most `rows` rows
// together.
StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts, int64_t rows,
                          const Tensor* padding = nullptr);

// Returns a copy of rows [begin, end), which does not keep the rest of `whole` in memory.
StatusOr<Tensor> CopyRows(const Tensor& whole, int64_t begin, int64_t end);

// Joins the results that a request has from each of its parts.
Status JoinParts(std::vector<std::vector<Tensor>> parts, std::vector<Tensor>* results);

}  // namespace penstock
