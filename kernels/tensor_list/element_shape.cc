// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_list/element_shape.h"

#include <utility>

#include "kernels/array/arguments.h"

namespace penstock {

StatusOr<PartialShape> ElementShape(const Tensor& tensor) {
  if (tensor.rank() > 0) {
    ASSIGN_OR_RETURN(const Dims dims, IntVector(tensor, "element_shape"));
    return PartialShape::Make(dims);
  }
  ASSIGN_OR_RETURN(const int64_t scalar, IntScalar(tensor, "element_shape"));
  if (scalar == -1) return PartialShape();
  return InvalidArgument("The only valid scalar shape tensor is the fully unknown shape specified ",
                         "as -1; element_shape is ", scalar);
}

StatusOr<PartialShape> ElementShapeInput(const ShapeScope& s, int i) {
  if (s.constant(i) != nullptr) return ElementShape(*s.constant(i));
  const PartialShape& shape = s.input(i);
  if (!shape.known_rank() || shape.rank() == 0 || shape.dim(0) < 0) return PartialShape();
  if (shape.rank() > 1) {
    return InvalidArgument("element_shape must be a vector or a scalar, has shape ",
                           shape.ToString());
  }
  if (shape.dim(0) > kMaxRank) {
    return InvalidArgument("element_shape has ", shape.dim(0), " dimensions; at most ", kMaxRank);
  }
  return PartialShape::UnknownOfRank(static_cast<int>(shape.dim(0)));
}

PartialShape ElementsOf(const ShapeScope& s, int i) {
  return s.element(i) == nullptr ? PartialShape() : s.element(i)->shape;
}

void SetListOutput(ShapeScope& s, DType element_dtype, PartialShape element_shape) {
  s.set_output(0, PartialShape::Scalar());
  s.set_output_element(0, {element_dtype, std::move(element_shape)});
}

Status SameList(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 0).status());
  s.set_output(0, PartialShape::Scalar());
  if (s.element(0) != nullptr) s.set_output_element(0, *s.element(0));
  return OkStatus();
}

DType ElementType(const ShapeScope& s) { return s.attr<EdgeType>("element_dtype").dtype; }

}  // namespace penstock
