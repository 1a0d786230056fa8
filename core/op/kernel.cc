// SPDX-License-Identifier: Apache-2.0
#include "core/op/kernel.h"

#include <limits>

namespace penstock {

Status KernelInit::Attr(string_view attr, DType* value) const {
  EdgeType type;
  RETURN_IF_ERROR(Attr<EdgeType>(attr, &type));
  *value = type.dtype;
  return OkStatus();
}

Status KernelInit::Attr(string_view attr, int* value) const {
  int64_t wide = 0;
  RETURN_IF_ERROR(Attr<int64_t>(attr, &wide));
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    return InvalidArgument("node '", name, "': attribute '", attr, "' is ", wide,
                           ", must fit in 32 bits");
  }
  *value = static_cast<int>(wide);
  return OkStatus();
}

Status KernelInit::Attr(string_view attr, std::vector<DType>* value) const {
  std::vector<EdgeType> types;
  RETURN_IF_ERROR(Attr<std::vector<EdgeType>>(attr, &types));
  value->clear();
  for (EdgeType type : types) value->push_back(type.dtype);
  return OkStatus();
}

Status KernelContext::Allocate(int i, const Shape& shape, Tensor** output) {
  ASSIGN_OR_RETURN(p_.outputs[i], Tensor::Make(OutputAllocator(i), output_type(i).dtype, shape));
  *output = &p_.outputs[i];
  return OkStatus();
}

Status KernelContext::ForwardOrAllocate(int from, int i, const Shape& shape, Tensor** output) {
  const Tensor& input = p_.inputs[from];
  const DType dtype = output_type(i).dtype;
  if (!input.unique() || input.dtype() != dtype || input.num_elements() != shape.num_elements() ||
      input.buffer()->allocator() != &OutputAllocator(i)) {
    return Allocate(i, shape, output);
  }
  p_.outputs[i] = input.shape() == shape ? input : input.Reshaped(shape);
  *output = &p_.outputs[i];
  return OkStatus();
}

StatusOr<Tensor> KernelContext::Temporary(DType dtype, const Shape& shape) {
  return Tensor::Make(allocator(), dtype, shape);
}

}  // namespace penstock
