// SPDX-License-Identifier: Apache-2.0
//
// Converts slices and shapes from their protobuf messages, which are only forward-declared here.
#pragma once

#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/shape.h"

namespace tensorflow {
class TensorShapeProto;
class TensorSliceProto;
}  // namespace tensorflow

namespace penstock {

// Copies starts and lengths from the message, without checking that they fit a tensor.
TensorSlice SliceFromProto(const tensorflow::TensorSliceProto& proto);
void SliceToProto(const TensorSlice& slice, tensorflow::TensorSliceProto* proto);
// Returns the shape in the message. InvalidArgument if a size is unknown or negative, or if the
// shape is too large for a tensor.
StatusOr<Shape> SavedShapeFromProto(const tensorflow::TensorShapeProto& proto);
void SavedShapeToProto(const Shape& shape, tensorflow::TensorShapeProto* proto);

}  // namespace penstock
