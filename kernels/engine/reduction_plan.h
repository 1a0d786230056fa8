// SPDX-License-Identifier: Apache-2.0
//
// ReductionPlan: how a reduction over any set of axes walks through its input. Neighbouring
// dimensions that are both kept or both reduced are joined, and dimensions of size one are dropped.
// A value type.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct ReductionPlan {
  struct Dim {
    int64_t size = 1;
    int64_t stride = 0;  // in elements of the input
  };
  using Dims = absl::InlinedVector<Dim, 4>;

  // Makes a plan. InvalidArgument if an axis is out of range or named twice. Negative axes count
  // from the end.
  static StatusOr<ReductionPlan> Make(const Shape& input, absl::Span<const int64_t> axes,
                                      bool keep_dims);

  Shape output;
  // Outermost first. The innermost kept and the innermost reduced dimension are stored separately,
  // because the inner loops run over them.
  Dims outer_kept, outer_reduced;
  Dim kept, reduced;
  int64_t num_outputs = 1;  // elements of the output
  int64_t num_reduced = 1;  // input elements of each output

  // Returns the input offset of element `index` of the dimensions.
  static int64_t Offset(const Dims& dims, int64_t index);
};

// Returns the values of an int32 or int64 scalar or vector of axes. Errors call the tensor `what`.
StatusOr<absl::InlinedVector<int64_t, 4>> AxisValues(const Tensor& axes, string_view what);
// Returns the axis that a scalar, or a vector of one element, holds; a negative axis counts from
// the end. InvalidArgument if the tensor is not one integer, or if the axis is out of range.
StatusOr<int> AxisValue(const Tensor& axis, int rank, string_view what);

}  // namespace penstock
