// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/rows.h"

#include <algorithm>

#include "kernels/array/elements.h"

namespace penstock {

StatusOr<int64_t> CountSparseRows(const SparseTensor& x) {
  if (x.rank() >= 2) return x.shape()[0];
  return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ", x.rank());
}

Status ForEachSparseRow(const SparseTensor& x,
                        absl::FunctionRef<Status(int64_t row, Tensor indices, Tensor values)> use) {
  RETURN_IF_ERROR(x.CheckOrder());
  int64_t begin = 0;
  for (int64_t row = 0; row < x.shape()[0]; ++row) {
    int64_t end = begin;
    while (end < x.size() && x.place(end)[0] == row) ++end;
    Tensor indices(DType::kInt64, Shape{end - begin, x.rank() - 1});
    for (int64_t i = begin; i < end; ++i) {
      std::copy(x.place(i).begin() + 1, x.place(i).end(),
                indices.mutable_data<int64_t>() + (i - begin) * (x.rank() - 1));
    }
    RETURN_IF_ERROR(use(row, std::move(indices), x.values().Slice(begin, end)));
    begin = end;
  }
  return OkStatus();
}

Status WriteSparseStack(KernelContext& ctx, Place stack, const std::vector<SparseTensor>& parts) {
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].rank() == parts[0].rank()) continue;
    return InvalidArgument("Inconsistent rank across SparseTensors: rank prior to SparseTensor[", i,
                           "] was: ", parts[0].rank(), " but rank of SparseTensor[", i,
                           "] is: ", parts[i].rank());
  }
  Dims shape(stack.begin(), stack.end());
  shape.insert(shape.end(), parts[0].rank(), 0);
  const int64_t front = static_cast<int64_t>(stack.size()), rank = shape.size();
  int64_t n = 0;
  for (const SparseTensor& part : parts) {
    n += part.size();
    for (int d = 0; d < part.rank(); ++d) {
      shape[front + d] = std::max(shape[front + d], part.shape()[d]);
    }
  }
  RETURN_IF_ERROR(CheckedProduct(shape).status());
  Tensor *indices, *values;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape{n, rank}, &indices));
  RETURN_IF_ERROR(ctx.Allocate(1, Shape{n}, &values));
  int64_t row = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const SparseTensor& part = parts[p];
    CopyElements(part.dtype(), part.values().raw_data(),
                 ElementAt(values->mutable_raw_data(), part.dtype(), row), part.size());
    for (int64_t i = 0; i < part.size(); ++i, ++row) {
      int64_t* to = indices->mutable_data<int64_t>() + row * rank;
      int64_t rest = static_cast<int64_t>(p);
      for (int64_t d = front - 1; d >= 0; --d) {
        to[d] = rest % stack[d];
        rest /= stack[d];
      }
      std::copy(part.place(i).begin(), part.place(i).end(), to + front);
    }
  }
  return WriteVector(ctx, 2, shape);
}

}  // namespace penstock
