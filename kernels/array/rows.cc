// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/rows.h"

#include "kernels/array/elements.h"
#include "kernels/array/share.h"

namespace penstock {

StatusOr<Tensor> Rows(KernelContext& ctx, const Tensor& value, int64_t begin, int64_t end,
                      const Shape& shape) {
  Tensor rows = value.Slice(begin, end).Reshaped(shape);
  const int64_t row = value.dim(0) == 0 ? 0 : value.num_elements() / value.dim(0);
  if (IsAlignedAt(value, begin * row)) return rows;
  ASSIGN_OR_RETURN(Tensor copy, ctx.Temporary(value.dtype(), shape));
  CopyElements(value.dtype(), rows.raw_data(), copy.mutable_raw_data(), shape.num_elements());
  return copy;
}

void JoinRows(KernelContext& ctx, const std::vector<Tensor>& parts, Tensor* whole) {
  std::vector<int64_t> begins;  // first element of each part
  int64_t end = 0;
  for (const Tensor& part : parts) {
    begins.push_back(end);
    end += part.num_elements();
  }
  if (end == 0) return;
  const DType dtype = whole->dtype();
  void* const to = whole->mutable_raw_data();
  const double part_ns = 20 + 0.1 * static_cast<double>(whole->bytes()) / parts.size();
  ctx.threads().ParallelFor(parts.size(), part_ns, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      CopyElements(dtype, parts[i].raw_data(), ElementAt(to, dtype, begins[i]),
                   parts[i].num_elements());
    }
  });
}

StatusOr<Shape> WithFirst(int64_t first, const Shape& rest) {
  Dims dims(rest.dims().begin(), rest.dims().end());
  dims.insert(dims.begin(), first);
  return Shape::Make(dims);
}

}  // namespace penstock
