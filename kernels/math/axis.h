// SPDX-License-Identifier: Apache-2.0
//
// What ops along one axis have in common (ArgMax, Cumsum, ...): the tensor seen as
// [outer, length, inner], and a shape function's look at the axis.
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

// The axis of input `i` for input 0, where both are known; -1 where not.
inline StatusOr<int> KnownAxis(const ShapeScope& s, int i) {
  if (!s.input(0).known_rank() || s.constant(i) == nullptr) return -1;
  return AxisValue(*s.constant(i), s.input(0).rank(), "axis");
}

}  // namespace penstock
