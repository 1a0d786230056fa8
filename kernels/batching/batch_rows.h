// SPDX-License-Identifier: Apache-2.0
//
// Joins tensors along dimension 0, and copies rows out of tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Returns a tensor of `rows` rows: the rows of all `parts`, followed by copies of `padding`, a
// tensor of one row, or by zeros if `padding` is null. InvalidArgument unless all rows have the
// same type and shape. REQUIRES: there is at least one part, and the parts have at most `rows` rows
// in total.
StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts, int64_t rows,
                          const Tensor* padding = nullptr);

// Returns rows [begin, end) of `whole`: `whole` itself if these are all of its rows, else a copy,
// which does not keep the other rows in memory.
StatusOr<Tensor> CopyRows(const Tensor& whole, int64_t begin, int64_t end);

// Sets `*results`, which must be empty, to the results of a request. parts[p][i] has the rows of
// result i that part p contributes.
Status JoinParts(std::vector<std::vector<Tensor>> parts, std::vector<Tensor>* results);

}  // namespace penstock
