// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/ragged_value.h"

#include <utility>

namespace penstock {
namespace {

const bool registered = RegisterVariantDecoder(RaggedValue::kTypeName, RaggedValue::Decode);

}  // namespace

StatusOr<Variant> RaggedValue::Of(std::vector<Tensor> splits, Tensor values) {
  auto made = std::make_shared<RaggedValue>();
  RETURN_IF_ERROR(made->Admit(values));
  made->splits_ = std::move(splits);
  made->values_ = std::move(values);
  return Variant{std::move(made)};
}

std::string RaggedValue::ToString() const {
  return StrCat("a ragged tensor of ", splits_.size(), " ragged dimensions: ", values_.ToString());
}

Status RaggedValue::Encode(std::string* metadata, std::vector<Tensor>* tensors) const {
  metadata->clear();
  *tensors = splits_;
  tensors->push_back(values_);
  return OkStatus();
}

StatusOr<Variant> RaggedValue::Decode(const std::string&, const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return InvalidArgument("a variant that is a ragged tensor has no values");
  std::vector<Tensor> splits(tensors.begin(), tensors.end() - 1);
  for (const Tensor& tensor : splits) {
    const bool ints = tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kInt64;
    if (ints && tensor.rank() == 1 && tensor.num_elements() > 0) continue;
    return InvalidArgument("row splits in a variant must be a vector of int32 or int64, are ",
                           tensor.ToString());
  }
  return Of(std::move(splits), tensors.back());
}

}  // namespace penstock
