// SPDX-License-Identifier: Apache-2.0
//
// The shape of a list's elements as ops name it: a vector of sizes of which some may be -1, or the
// scalar -1 if not even the rank is known.
#pragma once

#include "core/op/shape_scope.h"
#include "core/tensor/tensor.h"

namespace penstock {

// For kernels: the shape that a tensor spells.
StatusOr<PartialShape> ElementShape(const Tensor& tensor);

// For shape functions. What input i spells, as far as that is known.
StatusOr<PartialShape> ElementShapeInput(const ShapeScope& s, int i);
// Returns the known shape of the elements of the list that input i holds.
PartialShape ElementsOf(const ShapeScope& s, int i);
// States that output 0 holds a list.
void SetListOutput(ShapeScope& s, DType element_dtype, PartialShape element_shape);
// Output 0 holds a list like input 0 does.
Status SameList(ShapeScope& s);
// Element of attribute "element_dtype".
DType ElementType(const ShapeScope& s);

}  // namespace penstock
