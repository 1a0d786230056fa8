// SPDX-License-Identifier: Apache-2.0
//
// What all ops have in common that fold a tensor along axes: definition, shape, and the way their
// gradients come back to the input's shape.
#pragma once

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/op/shape_scope.h"
#include "kernels/math/forms.h"

namespace penstock {

// y = fold of `input` along `reduction_indices`, in one type T.
OpDef ReductionOp(const char* doc, const DTypes& types, GradientFn gradient);
// The same on truth values.
OpDef LogicalReductionOp(const char* doc);
Status ReductionShape(ShapeScope& s);

// In the gradient of a reduction: `reduced`, which has the shape of output 0, with dimensions of
// one where the axes were, so that it broadcasts against the input.
Output WithKeptDims(const GradientScope& g, Output reduced);
// The same, repeated to the input's shape.
Output SpreadOverInput(const GradientScope& g, Output reduced);

}  // namespace penstock
