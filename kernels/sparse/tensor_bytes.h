// SPDX-License-Identifier: Apache-2.0
//
// Tensors as bytes of TensorFlow's TensorProto, which are the elements of serialized sparse
// tensors.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Encodes a tensor. REQUIRES: plain elements or strings.
std::string TensorBytes(const Tensor& tensor);
// Decodes a tensor. InvalidArgument if the bytes are not a TensorProto, or if the shape does not
// fit the content.
StatusOr<Tensor> TensorFromBytes(const std::string& bytes, Allocator& allocator);

}  // namespace penstock
