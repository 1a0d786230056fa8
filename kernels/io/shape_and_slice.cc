// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/shape_and_slice.h"

#include "core/checkpoint/tensor_slice.h"
#include "kernels/io/file_kernel.h"

namespace penstock {

StatusOr<SliceRequest> SliceRequest::Parse(const KernelContext& ctx, int count, bool has_slices) {
  const size_t wanted = static_cast<size_t>(count);
  SliceRequest request;
  ASSIGN_OR_RETURN(request.file, StringInput(ctx, 0, "the file's name"));
  ASSIGN_OR_RETURN(request.names, StringsInput(ctx, 1, "tensor_names"));
  if (has_slices) {
    ASSIGN_OR_RETURN(request.slices, StringsInput(ctx, 2, "shape_and_slices"));
  }
  if (request.names.size() != wanted || (has_slices && request.slices.size() != wanted)) {
    return InvalidArgument("got ", request.names.size(), " tensor_names and ",
                           request.slices.size(), " shape_and_slices for ", count, " tensors");
  }
  return request;
}

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
