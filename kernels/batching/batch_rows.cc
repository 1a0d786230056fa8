// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/batch_rows.h"

#include <utility>

#include "kernels/array/elements.h"

namespace penstock {
namespace {

StatusOr<Tensor> MakeLike(const Tensor& row, int64_t rows) {
  Dims dims(row.shape().dims().begin(), row.shape().dims().end());
  dims[0] = rows;
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return Tensor::Make(CpuAllocator(), row.dtype(), shape);
}

}  // namespace

StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts, int64_t rows, const Tensor* padding) {
  const Tensor& first = parts.front();
  if (parts.size() == 1 && first.dim(0) == rows) return first;
  ASSIGN_OR_RETURN(Tensor joined, MakeLike(first, rows));
  const int64_t row = rows == 0 ? 0 : joined.num_elements() / rows;
  int64_t at = 0;
  const auto place = [&] { return ElementAt(joined.mutable_raw_data(), joined.dtype(), at); };
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() ||
        part.shape().dims().subspan(1) != first.shape().dims().subspan(1)) {
      return InvalidArgument("all rows of a batch must have one type and shape; a part is ",
                             Name(part.dtype()), part.shape().ToString(), ", the first one ",
                             Name(first.dtype()), first.shape().ToString());
    }
    CopyElements(part.dtype(), part.raw_data(), place(), part.num_elements());
    at += part.num_elements();
  }
  if (padding == nullptr) {
    ZeroElements(joined.dtype(), place(), joined.num_elements() - at);
    return joined;
  }
  for (; at < joined.num_elements(); at += row) {
    CopyElements(joined.dtype(), padding->raw_data(), place(), row);
  }
  return joined;
}

StatusOr<Tensor> CopyRows(const Tensor& whole, int64_t begin, int64_t end) {
  if (begin == 0 && end == whole.dim(0)) return whole;
  ASSIGN_OR_RETURN(Tensor copy, MakeLike(whole, end - begin));
  const int64_t row = whole.dim(0) == 0 ? 0 : whole.num_elements() / whole.dim(0);
  CopyElements(whole.dtype(), ElementAt(whole.raw_data(), whole.dtype(), begin * row),
               copy.mutable_raw_data(), copy.num_elements());
  return copy;
}

Status JoinParts(std::vector<std::vector<Tensor>> parts, std::vector<Tensor>* results) {
  if (parts.size() == 1) {
    *results = std::move(parts.front());
    return OkStatus();
  }
  for (size_t i = 0; i < parts.front().size(); ++i) {
    std::vector<Tensor> pieces;
    int64_t rows = 0;
    for (const auto& part : parts) {
      pieces.push_back(part[i]);
      rows += part[i].dim(0);
    }
    ASSIGN_OR_RETURN(Tensor joined, JoinRows(pieces, rows));
    results->push_back(std::move(joined));
  }
  return OkStatus();
}

}  // namespace penstock
