// SPDX-License-Identifier: Apache-2.0
//
// The element shape of a list as an input of ops: a vector of sizes, some of which may be -1, or
// the scalar -1 if the rank is unknown.
#pragma once

#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

// For kernels: returns the shape that a tensor holds. InvalidArgument if it holds none.
StatusOr<PartialShape> ElementShape(const Tensor& tensor);

// For shape functions: returns the shape that input i holds, as far as it is known. InvalidArgument
// if the input cannot hold one.
StatusOr<PartialShape> ElementShapeInput(const ShapeScope& s, int i);
// Returns the known shape of the elements of the list in input i.
PartialShape ElementsOf(const ShapeScope& s, int i);
// Sets output 0 to a list with this element type and shape.
void SetListOutput(ShapeScope& s, DType element_dtype, PartialShape element_shape);
// Shape function: output 0 is a list with the element type and shape of input 0.
Status SameList(ShapeScope& s);
// Returns the attribute "element_dtype".
DType ElementType(const ShapeScope& s);

}  // namespace penstock
