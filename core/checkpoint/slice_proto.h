// SPDX-License-Identifier: Apache-2.0
//
// Slices and shapes as messages. The messages are declared only.
#pragma once

#include "core/base/status.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/shape.h"

namespace tensorflow {
class TensorShapeProto;
class TensorSliceProto;
}  // namespace tensorflow

namespace penstock {

// Extents are as they were written: whether they fit a tensor is another question.
TensorSlice SliceFromProto(const tensorflow::TensorSliceProto& proto);
void SliceToProto(const TensorSlice& slice, tensorflow::TensorSliceProto* proto);
// InvalidArgument for sizes that are unknown or negative.
StatusOr<Shape> SavedShapeFromProto(const tensorflow::TensorShapeProto& proto);
void SavedShapeToProto(const Shape& shape, tensorflow::TensorShapeProto* proto);

}  // namespace penstock
