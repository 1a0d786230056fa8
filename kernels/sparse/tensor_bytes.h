// SPDX-License-Identifier: Apache-2.0
//
// Tensors as bytes of TensorFlow's TensorProto, as the elements of serialized sparse tensors hold
// them.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

// REQUIRES plain elements or strings.
std::string TensorBytes(const Tensor& tensor);
// InvalidArgument where the bytes are no TensorProto, or it does not hold what its shape says.
StatusOr<Tensor> TensorFromBytes(const std::string& bytes, Allocator& allocator);

}  // namespace penstock
