// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/shape_and_slice.h"

#include "core/checkpoint/tensor_slice.h"

namespace penstock {

Status RestoredShapes(ShapeScope& s) {
  const Tensor* slices = s.constant(2);
  if (slices == nullptr || slices->dtype() != DType::kString ||
      slices->num_elements() != s.num_outputs()) {
    return OkStatus();
  }
  for (int i = 0; i < s.num_outputs(); ++i) {
    const std::string& text = slices->flat<std::string>()[i];
    if (text.empty()) continue;
    ASSIGN_OR_RETURN(const ShapeAndSlice part, ShapeAndSlice::Parse(text));
    ASSIGN_OR_RETURN(const TensorSlice box, part.slice.Within(part.shape));
    s.set_output(i, box.shape());
  }
  return OkStatus();
}

}  // namespace penstock
