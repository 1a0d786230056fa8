// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/sparse_tensor.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"

namespace penstock {

StatusOr<SparseTensor> SparseTensor::Make(Tensor indices, Tensor values, const Tensor& shape,
                                          string_view name) {
  const std::string prefix = name.empty() ? "" : StrCat(name, "_");
  if (indices.dtype() != DType::kInt64 || indices.rank() != 2) {
    return InvalidArgument(prefix, "indices must be an int64 matrix, has shape ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1 || values.dim(0) != indices.dim(0)) {
    return InvalidArgument(prefix, "values must be a vector of one element per row of indices, ",
                           indices.dim(0), "; has shape ", values.shape().ToString());
  }
  SparseTensor t;
  ASSIGN_OR_RETURN(t.shape_, IntVector(shape, StrCat(prefix, "shape")));
  if (static_cast<int64_t>(t.shape_.size()) != indices.dim(1)) {
    return InvalidArgument(prefix, "shape must have one element per column of indices, ",
                           indices.dim(1), "; has ", t.shape_.size());
  }
  if (t.shape_.size() > kMaxRank)
    return InvalidArgument(prefix, "shape has more than 254 elements");
  const auto product = CheckedProduct(t.shape_);
  if (!product.ok()) return Annotate(product.status(), StrCat(prefix, "shape"));
  t.indices_ = std::move(indices);
  t.values_ = std::move(values);
  return t;
}

StatusOr<SparseTensor> SparseTensor::FromInputs(const KernelContext& ctx, int first,
                                                string_view name) {
  return Make(ctx.input(first), ctx.input(first + 1), ctx.input(first + 2), name);
}

Status SparseTensor::CheckBounds() const {
  for (int64_t i = 0; i < size(); ++i) {
    const Place at = place(i);
    for (int d = 0; d < rank(); ++d) {
      if (at[d] < 0 || at[d] >= shape_[d]) {
        return InvalidArgument("indices[", i, "] = ", ToString(at),
                               " is out of bounds: need 0 <= index < ", ToString(shape_));
      }
    }
  }
  return OkStatus();
}

Status SparseTensor::CheckOrder() const {
  RETURN_IF_ERROR(CheckBounds());
  for (int64_t i = 1; i < size(); ++i) {
    const int order = Compare(place(i - 1), place(i));
    if (order > 0) {
      return InvalidArgument("indices[", i, "] = ", ToString(place(i)),
                             " is out of order. Many sparse ops require sorted indices.");
    }
    if (order == 0)
      return InvalidArgument("indices[", i, "] = ", ToString(place(i)), " is repeated");
  }
  return OkStatus();
}

std::vector<int64_t> SparseTensor::Order() const {
  std::vector<int64_t> order(size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [this](int64_t a, int64_t b) { return Compare(place(a), place(b)) < 0; };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::stable_sort(order.begin(), order.end(), before);
  }
  return order;
}

std::string ToString(Place place) { return StrCat("[", absl::StrJoin(place, ","), "]"); }

int Compare(Place a, Place b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}

Status WriteEntries(KernelContext& ctx, int indices_at, int values_at,
                    const std::vector<int64_t>& places, int rank, const Tensor& from,
                    const std::vector<int64_t>& picks) {
  const int64_t n = static_cast<int64_t>(picks.size());
  Tensor *indices, *values;
  RETURN_IF_ERROR(ctx.Allocate(indices_at, Shape{n, rank}, &indices));
  RETURN_IF_ERROR(ctx.Allocate(values_at, Shape{n}, &values));
  std::copy(places.begin(), places.end(), indices->mutable_data<int64_t>());
  const DType dtype = from.dtype();
  for (int64_t i = 0; i < n; ++i) {
    CopyElements(dtype, ElementAt(from.raw_data(), dtype, picks[i]),
                 ElementAt(values->mutable_raw_data(), dtype, i), 1);
  }
  return OkStatus();
}

Status WriteVector(KernelContext& ctx, int i, absl::Span<const int64_t> values) {
  Tensor* out;
  RETURN_IF_ERROR(ctx.Allocate(i, Shape{static_cast<int64_t>(values.size())}, &out));
  std::copy(values.begin(), values.end(), out->mutable_data<int64_t>());
  return OkStatus();
}

StatusOr<int64_t> SparseInputRank(const ShapeScope& s, int first) {
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(first, 2));
  ASSIGN_OR_RETURN(const PartialShape values, s.WithRank(first + 1, 1));
  ASSIGN_OR_RETURN(const PartialShape shape, s.WithRank(first + 2, 1));
  const auto dim = [](const PartialShape& p, int d) { return p.known_rank() ? p.dim(d) : -1; };
  const auto agree = [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; };
  if (!agree(dim(indices, 0), dim(values, 0)) || !agree(dim(indices, 1), dim(shape, 0))) {
    return InvalidArgument("indices [n, rank], values [n] and shape [rank] do not agree: ",
                           indices.ToString(), ", ", values.ToString(), ", ", shape.ToString());
  }
  const int64_t rank = dim(shape, 0) >= 0 ? dim(shape, 0) : dim(indices, 1);
  if (rank <= kMaxRank) return rank;
  return InvalidArgument("a sparse tensor has ", rank, " dimensions, at most ", kMaxRank,
                         " may be");
}

void SetSparseOutput(ShapeScope& s, int first, int64_t size, int64_t rank, bool with_shape) {
  s.set_output(first, PartialShape{size, rank});
  s.set_output(first + 1, PartialShape{size});
  if (with_shape) s.set_output(first + 2, PartialShape{rank});
}

}  // namespace penstock
