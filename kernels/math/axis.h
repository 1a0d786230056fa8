// SPDX-License-Identifier: Apache-2.0
//
// Shared by ops along one axis (ArgMax, Cumsum, ...): a view of the tensor as [outer, length,
// inner], and the axis for shape functions.
#pragma once

#include "core/op/shape_scope.h"
#include "kernels/engine/reduction_plan.h"

namespace penstock {

struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
};

inline AxisView ViewAlong(const Shape& shape, int axis) {
  AxisView view{.length = shape.dim(axis)};
  for (int d = 0; d < axis; ++d) view.outer *= shape.dim(d);
  for (int d = axis + 1; d < shape.rank(); ++d) view.inner *= shape.dim(d);
  return view;
}

// Returns the axis of input 0 that input `i` names, or -1 if the axis or the rank is not known.
// InvalidArgument if the axis is out of range.
inline StatusOr<int> KnownAxis(const ShapeScope& s, int i) {
  if (!s.input(0).known_rank() || s.constant(i) == nullptr) return -1;
  return AxisValue(*s.constant(i), s.input(0).rank(), "axis");
}

}  // namespace penstock
