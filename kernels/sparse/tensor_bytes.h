// SPDX-License-Identifier: Apache-2.0
//
// Tensors as bytes of TensorFlow's TensorProto, which are the elements of serialized sparse
// tensors.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// REQUIRES plain elements or strings.
std::string TensorBytes(const Tensor& tensor);
// InvalidArgument if the bytes are not a TensorProto, or its shape does not fit its content.
StatusOr<Tensor> TensorFromBytes(const std::string& bytes, Allocator& allocator);

}  // namespace penstock
