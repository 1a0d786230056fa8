// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/shape_scope.h"

namespace penstock {

// States what is known of the tensors that are restored: input 2 says of each which part of which
// shape is wanted. It need not be constant.
Status RestoredShapes(ShapeScope& s);

}  // namespace penstock
