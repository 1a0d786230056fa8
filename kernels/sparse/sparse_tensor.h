// SPDX-License-Identifier: Apache-2.0
//
// SparseTensor: three tensors (indices [n, rank], values [n], dense shape [rank]) as one checked
// object, the argument of all sparse ops.
//
// A view: it shares the tensors' buffers. Row i of the indices is the place of value i. CheckBounds
// and CheckOrder are separate, because some ops need only the first of them.
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
  // Makes a sparse tensor. InvalidArgument names the argument that is wrong: `name`_indices,
  // _values or _shape; `name` may be empty. The product of the dense shape may exceed the size of a
  // dense tensor, but must fit in int64.
  static StatusOr<SparseTensor> Make(Tensor indices, Tensor values, const Tensor& shape,
                                     string_view name = "");
  // Makes a sparse tensor from the inputs first, first + 1 and first + 2. Errors as from Make.
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

  // Checks the places. InvalidArgument unless every place lies within the shape.
  Status CheckBounds() const;
  // Checks the bounds, and that the places are in row-major order without duplicates.
  // InvalidArgument has TensorFlow's text.
  Status CheckOrder() const;
  // Returns the indices of the values in row-major order of their places; values at equal places
  // keep their order.
  std::vector<int64_t> Order() const;

 private:
  Tensor indices_, values_;
  Dims shape_;
};

// Returns a text like "[0,3]".
std::string ToString(Place place);
// Compares in row-major order: negative, zero or positive if a comes before, at or after b.
int Compare(Place a, Place b);

// Writes `places`, an [n, rank] matrix in row-major order, to output indices_at; and the values of
// `from` with the indices `picks` to output values_at.
Status WriteEntries(KernelContext& ctx, int indices_at, int values_at,
                    const std::vector<int64_t>& places, int rank, const Tensor& from,
                    const std::vector<int64_t>& picks);
// Writes a vector to output i.
Status WriteVector(KernelContext& ctx, int i, absl::Span<const int64_t> values);

// For shape functions: returns the rank of the sparse tensor whose indices, values and shape are
// the inputs `first` to `first` + 2 (-1: unknown). InvalidArgument if their shapes do not fit each
// other.
StatusOr<int64_t> SparseInputRank(const ShapeScope& s, int first);
// Sets the shapes of outputs `first` (indices) and `first` + 1 (values) to those of a sparse tensor
// of `size` entries and, if `with_shape`, that of output `first` + 2 (the dense shape).
void SetSparseOutput(ShapeScope& s, int first, int64_t size, int64_t rank, bool with_shape = true);

}  // namespace penstock
