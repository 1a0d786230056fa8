// SPDX-License-Identifier: Apache-2.0
//
// Shapes that arrive as tensors: what most random ops have as their first input.
#pragma once

#include "core/base/status.h"
#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

// From a vector of int32 or int64 sizes. InvalidArgument names `what` and what it holds.
inline StatusOr<Shape> ShapeFromTensor(const char* what, const Tensor& sizes) {
  if (sizes.rank() != 1) {
    return InvalidArgument(what, " must be a vector of sizes, is ", sizes.ToString());
  }
  Dims dims;
  for (int64_t i = 0; i < sizes.num_elements(); ++i) {
    dims.push_back(sizes.dtype() == DType::kInt64 ? sizes.data<int64_t>()[i]
                                                  : sizes.data<int32_t>()[i]);
  }
  const StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return Annotate(shape.status(), what);
  return shape;
}

// Output 0 has the shape that input 0 holds.
inline Status ShapeFromFirstInput(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape sizes, s.WithRank(0, 1));
  std::vector<int64_t> dims;
  PartialShape shape;
  if (s.ConstantInts(0, &dims)) {
    ASSIGN_OR_RETURN(shape, PartialShape::Make(dims));
  } else if (sizes.known_rank() && sizes.dim(0) >= 0 && sizes.dim(0) <= kMaxRank) {
    shape = PartialShape::UnknownOfRank(static_cast<int>(sizes.dim(0)));
  }
  s.set_output(0, shape);
  return OkStatus();
}

}  // namespace penstock
