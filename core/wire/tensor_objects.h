// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the elements of TensorProto that are not plain bytes: strings, resource handles
// and variants, which contain tensors. Each has two encodings: in its typed field, and in
// tensor_content as a list of byte strings (all lengths as varints, then all bytes).
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tensorflow {
class TensorProto;
}

namespace penstock {

// The memory that may still be used for a tensor or a message, including all tensors in variants.
struct TensorBudget {
  int64_t bytes_left;
  int depth = 0;  // nesting of variants in variants
};

// Do the same as TensorFromProto and TensorToProto, for tensors in variants.
StatusOr<Tensor> UnpackTensor(const tensorflow::TensorProto& proto, TensorBudget* budget);
Status PackTensor(const Tensor& tensor, TensorBudget* budget, tensorflow::TensorProto* proto);

// Convert the elements of a tensor from and to the fields of its message. REQUIRES: the tensor's
// type is not plain.
Status UnpackObjects(const tensorflow::TensorProto& proto, TensorBudget* budget, Tensor* tensor);
Status PackObjects(const Tensor& tensor, TensorBudget* budget, tensorflow::TensorProto* proto);

}  // namespace penstock
