// SPDX-License-Identifier: Apache-2.0
//
// The shape function of ops that output the components of an element.
#pragma once

#include "core/op/shape_scope.h"

namespace penstock {

// Sets the shapes that the attribute output_shapes lists. InvalidArgument unless it has one for
// each output.
Status ElementShapes(ShapeScope& s);

}  // namespace penstock
