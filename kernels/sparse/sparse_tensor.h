// SPDX-License-Identifier: Apache-2.0
//
// SparseTensor: three tensors (indices [n, rank], values [n], dense shape [rank]) as one, checked.
// What all the sparse ops begin with.
//
// A view: it shares the tensors' buffers. Row i of the indices is the place of value i. The order
// of rows and whether they are within the shape are checked apart: ops differ in what they need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/shape_scope.h"

namespace penstock {

using Place = absl::Span<const int64_t>;

class SparseTensor {
 public:
  // InvalidArgument names `name`_indices, _values or _shape. `name` may be empty. The shape's
  // product may be more than a dense tensor can hold, not more than int64 can.
  static StatusOr<SparseTensor> Make(Tensor indices, Tensor values, const Tensor& shape,
                                     string_view name = "");
  // From inputs first, first + 1, first + 2.
  static StatusOr<SparseTensor> FromInputs(const KernelContext& ctx, int first,
                                           string_view name = "");

  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return indices_.dim(0); }
  Place place(int64_t i) const {
    return Place(indices_.data<int64_t>() + i * rank(), static_cast<size_t>(rank()));
  }
  const Dims& shape() const { return shape_; }
  const Tensor& indices() const { return indices_; }
  const Tensor& values() const { return values_; }
  DType dtype() const { return values_.dtype(); }

  // Every place lies within the shape.
  Status CheckBounds() const;
  // ... and places are in row-major order, none twice. InvalidArgument in TensorFlow's words.
  Status CheckOrder() const;
  // The numbers of the values in row-major order of their places; equal places keep their order.
  std::vector<int64_t> Order() const;

 private:
  Tensor indices_, values_;
  Dims shape_;
};

// "[0,3]"
std::string ToString(Place place);
// Row-major: negative, zero or positive as a comes before, at or after b.
int Compare(Place a, Place b);

// Outputs indices_at (places, [n, rank]) and values_at: values of `from`, in the order of `picks`,
// at `places` (row after row).
Status WriteEntries(KernelContext& ctx, int indices_at, int values_at,
                    const std::vector<int64_t>& places, int rank, const Tensor& from,
                    const std::vector<int64_t>& picks);
// Output i: a vector.
Status WriteVector(KernelContext& ctx, int i, absl::Span<const int64_t> values);

// For shape functions: checks the ranks of inputs first .. first + 2 against each other and gives
// the rank of the sparse tensor (-1: unknown).
StatusOr<int64_t> SparseInputRank(const ShapeScope& s, int first);
// Outputs first .. first + 2 (or + 1, where there is no shape) are a sparse tensor.
void SetSparseOutput(ShapeScope& s, int first, int64_t size, int64_t rank, bool with_shape = true);

}  // namespace penstock
