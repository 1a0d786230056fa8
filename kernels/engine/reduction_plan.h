// SPDX-License-Identifier: Apache-2.0
//
// ReductionPlan: how a reduction over any set of axes walks through its input, with neighbouring
// dimensions of the same kind joined and those of size one dropped. A value.
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

  // InvalidArgument where an axis is out of range or named twice. Negative axes count from the end.
  static StatusOr<ReductionPlan> Make(const Shape& input, absl::Span<const int64_t> axes,
                                      bool keep_dims);

  Shape output;
  // Outermost first, with the innermost of each kind held apart: the inner loops run over those.
  Dims outer_kept, outer_reduced;
  Dim kept, reduced;
  int64_t num_outputs = 1;  // elements
  int64_t num_reduced = 1;  // elements that make up each output

  // Where element `index` of the dimensions lies.
  static int64_t Offset(const Dims& dims, int64_t index);
};

// The values of an int32 or int64 scalar or vector, as ops take axes. InvalidArgument names `what`.
StatusOr<absl::InlinedVector<int64_t, 4>> AxisValues(const Tensor& axes, string_view what);
// One axis, from a scalar or a vector of one; negative ones count from the end.
StatusOr<int> AxisValue(const Tensor& axis, int rank, string_view what);

}  // namespace penstock
