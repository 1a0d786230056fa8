// SPDX-License-Identifier: Apache-2.0
//
// Splits a sparse tensor into its rows along dimension 0, each a sparse tensor; and stacks sparse
// tensors to one.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {

// Returns the number of rows. InvalidArgument unless `x` has rank 2 or more.
StatusOr<int64_t> CountSparseRows(const SparseTensor& x);

// Calls use(row, indices, values) for each row of `x`, also for rows without values; stops at the
// first error and returns it. `indices` have the places within the row. InvalidArgument unless the
// places of `x` lie within its shape, in row-major order without duplicates. REQUIRES: rank 2 or
// more.
Status ForEachSparseRow(const SparseTensor& x,
                        absl::FunctionRef<Status(int64_t row, Tensor indices, Tensor values)> use);

// Stacks `parts`, which have the type of output 1, along the leading dimensions `stack`, and writes
// the result to outputs 0 to 2. The result has the least shape that holds all parts.
// InvalidArgument if their ranks differ. REQUIRES: there is a part, and the product of `stack` is
// the number of parts.
Status WriteSparseStack(KernelContext& ctx, Place stack, const std::vector<SparseTensor>& parts);

}  // namespace penstock
