// SPDX-License-Identifier: Apache-2.0
//
// Shared by all ops that reduce a tensor along axes: op definitions, the shape function, and
// helpers that bring gradients back to the input's shape.
#pragma once

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/op/shape_scope.h"
#include "kernels/math/forms.h"

namespace penstock {

// Defines y = reduction of `input` along `reduction_indices`, with one type T.
OpDef ReductionOp(const char* doc, const DTypes& types, GradientFn gradient);
// Like ReductionOp, for bool.
OpDef LogicalReductionOp(const char* doc);
Status ReductionShape(ShapeScope& s);

// In the gradient of a reduction: returns `reduced`, which has the shape of output 0, with
// dimensions of size one in place of the reduced axes, so that it broadcasts against the input.
Output WithKeptDims(const GradientScope& g, Output reduced);
// Like WithKeptDims, then broadcasts to the input's shape.
Output BroadcastToInput(const GradientScope& g, Output reduced);

}  // namespace penstock
