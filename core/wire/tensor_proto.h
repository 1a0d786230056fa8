// SPDX-License-Identifier: Apache-2.0
//
// Converts tensors to and from TensorFlow's TensorProto. The message is only forward-declared, so
// that files that include this header need not compile protobuf's. Thread-safe: free functions
// without state.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tensorflow {
class TensorProto;
}  // namespace tensorflow

namespace penstock {

// Parses a message, which is not trusted: checks sizes before it allocates memory. `bytes_max`
// limits the memory of the tensor and of all tensors inside its variants. InvalidArgument says what
// is wrong; ResourceExhausted if the tensor is larger than `bytes_max`.
StatusOr<Tensor> TensorFromProto(const tensorflow::TensorProto& proto,
                                 int64_t bytes_max = int64_t{1} << 34);

// Writes numbers as raw bytes (tensor_content); strings, handles and variants go into their typed
// fields. Returns an error if a variant cannot be encoded: its class forbids it, or the message
// would take more than `bytes_max` in memory (a small variant may hold the same tensor many times).
Status TensorToProto(const Tensor& tensor, tensorflow::TensorProto* proto,
                     int64_t bytes_max = int64_t{1} << 31);

// Copies elements of a tensor of numbers, which are not trusted: a bool must be 0 or 1 in C++, so
// all other bytes of bools become 1.
void CopyPlainBytes(string_view bytes, DType dtype, void* to);

}  // namespace penstock
