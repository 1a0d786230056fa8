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

// The memory that a tensor, or a message, may still use, including all tensors in its variants.
struct TensorBudget {
  int64_t bytes_left;
  int depth = 0;  // nesting of variants in variants
};

// Do the same as TensorFromProto and TensorToProto, for tensors in variants.
StatusOr<Tensor> UnpackTensor(const tensorflow::TensorProto& proto, TensorBudget* budget);
Status PackTensor(const Tensor& tensor, TensorBudget* budget, tensorflow::TensorProto* proto);

// Convert the elements of *tensor, whose type is not plain, from and to the fields that hold them.
Status UnpackObjects(const tensorflow::TensorProto& proto, TensorBudget* budget, Tensor* tensor);
Status PackObjects(const Tensor& tensor, TensorBudget* budget, tensorflow::TensorProto* proto);

}  // namespace penstock
