// SPDX-License-Identifier: Apache-2.0
//
// Converts attribute values and shapes to and from TensorFlow's AttrValue and TensorShapeProto. The
// messages are only forward-declared, so that files that include this header need not compile
// protobuf's. Thread-safe: free functions without state.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/tensor/shape.h"

namespace tensorflow {
class AttrValue;
class TensorShapeProto;
}  // namespace tensorflow

namespace penstock {

// `bytes_max` limits the memory of the tensors in the attribute. InvalidArgument says what is
// wrong; ResourceExhausted if the tensors are larger.
StatusOr<AttrValue> AttrFromProto(const tensorflow::AttrValue& proto,
                                  int64_t bytes_max = int64_t{1} << 34);
// REQUIRES: all variants in `attr` can be encoded. Variants that were received in a message can
// always be encoded.
void AttrToProto(const AttrValue& attr, tensorflow::AttrValue* proto);

StatusOr<PartialShape> ShapeFromProto(const tensorflow::TensorShapeProto& proto);
void ShapeToProto(const PartialShape& shape, tensorflow::TensorShapeProto* proto);

}  // namespace penstock
