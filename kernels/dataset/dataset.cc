// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/dataset.h"

namespace penstock {

Status CheckTypes(const ElementSpec& expected, const ElementSpec& received) {
  if (expected.types.size() != received.types.size()) {
    return InvalidArgument("Number of components does not match: expected ", expected.types.size(),
                           " types but got ", received.types.size(), ".");
  }
  for (size_t i = 0; i < expected.types.size(); ++i) {
    if (expected.types[i] == received.types[i]) continue;
    return InvalidArgument("Data type mismatch at component ", i, ": expected ",
                           Name(expected.types[i]), " but got ", Name(received.types[i]), ".");
  }
  return OkStatus();
}

Status CheckShapes(const ElementSpec& expected, const ElementSpec& received) {
  if (expected.shapes.size() != received.shapes.size()) {
    return InvalidArgument("Number of components does not match: expected ", expected.shapes.size(),
                           " shapes but got ", received.shapes.size(), ".");
  }
  for (size_t i = 0; i < expected.shapes.size(); ++i) {
    if (expected.shapes[i].Compatible(received.shapes[i])) continue;
    return InvalidArgument("Incompatible shapes at component ", i, ": expected ",
                           expected.shapes[i].ToString(), " but got ",
                           received.shapes[i].ToString(), ".");
  }
  return OkStatus();
}

Status DatasetValue::Encode(std::string*, std::vector<Tensor>*) const {
  return Unimplemented("a dataset stays in the process that made it: place the ops that read it ",
                       "on the same task");
}

StatusOr<DatasetPtr> DatasetOf(const Tensor& tensor) {
  if (tensor.dtype() != DType::kVariant || tensor.rank() != 0) {
    return InvalidArgument("Dataset tensor must be a scalar of dtype DT_VARIANT.");
  }
  const auto* value = dynamic_cast<const DatasetValue*>(tensor.scalar<Variant>().value.get());
  if (value == nullptr) return InvalidArgument("Tensor must be a Dataset object.");
  return value->dataset();
}

StatusOr<Tensor> NewTensor(DType dtype, const Shape& shape) {
  return Tensor::Make(CpuAllocator(), dtype, shape);
}

}  // namespace penstock
