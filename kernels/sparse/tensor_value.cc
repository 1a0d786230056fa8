// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/tensor_value.h"

namespace penstock {
namespace {

const bool registered = RegisterVariantDecoder(TensorValue::kTypeName, TensorValue::Decode);

}  // namespace

StatusOr<Variant> TensorValue::Decode(const std::string&, const std::vector<Tensor>& tensors) {
  if (tensors.size() == 1) return Of(tensors[0]);
  return InvalidArgument("a variant that is a tensor holds ", tensors.size(), " of them");
}

}  // namespace penstock
